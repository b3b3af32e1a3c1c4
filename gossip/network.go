package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/summarycache/summarycache/gossip/insider"
)

// Network opens a node's sockets: the system's, or those of package memnet in tests. Addresses are
// ip:port, except Config.Bind, which is passed as configured. A packet socket must accept a
// *net.UDPAddr as destination. If a Network has the methods LookupNetIP and LookupSRV of
// [net.Resolver], they look up the names in Config.Join; otherwise the system does.
type Network interface {
	ListenPacket(addr string) (net.PacketConn, error)
	Listen(addr string) (net.Listener, error)
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// systemNetwork is UDP and TCP.
type systemNetwork struct{ dialer net.Dialer }

// packetBuffer is the size in bytes of the kernel's receive buffer; the kernel's own limit may be
// lower.
const packetBuffer = 2 << 20

func (*systemNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, err
	}
	if u, ok := c.(*net.UDPConn); ok {
		u.SetReadBuffer(packetBuffer) // a smaller buffer only loses more packets
	}
	return c, nil
}

func (*systemNetwork) Listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

func (n *systemNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.dialer.DialContext(ctx, "tcp", addr)
}

// listenBoth opens a packet socket and a stream listener with one port number.
func listenBoth(n Network, addr string) (net.PacketConn, net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, err
	}
	// A port that is free for streams may be in use for packets; then another one is tried.
	for attempt := 0; ; attempt++ {
		l, err := n.Listen(addr)
		if err != nil {
			return nil, nil, err
		}
		_, got, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			l.Close()
			return nil, nil, err
		}
		p, err := n.ListenPacket(net.JoinHostPort(host, got))
		if err == nil {
			return p, l, nil
		}
		l.Close()
		if port != "0" || attempt == 20 || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, nil, err
		}
	}
}

// advertised returns the address to announce, given the configured one, the entries of Config.Join and the bound one.
func advertised(configured string, join []string, bound netip.AddrPort) (netip.AddrPort, error) {
	if configured == "" {
		ip, err := bound.Addr(), error(nil)
		if ip.IsUnspecified() {
			ip, err = insider.OwnAddress(join)
		}
		return netip.AddrPortFrom(ip.Unmap(), bound.Port()), err
	}
	host, port := configured, "0"
	if _, err := netip.ParseAddr(configured); err != nil {
		if h, p, err := net.SplitHostPort(configured); err == nil {
			host, port = h, p
		}
	}
	a, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("advertise %q: no address for %q: %w", configured, host, err)
	}
	ap := a.AddrPort()
	if ip := ap.Addr().Unmap(); !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast() {
		return netip.AddrPort{}, fmt.Errorf("advertise %q: nothing can be reached there: want an address of this "+
			"machine, or nothing for that of Bind", configured)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), cmp.Or(ap.Port(), bound.Port())), nil
}
