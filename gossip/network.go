package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Network is where a node's sockets come from: the system, or package memnet in
// tests. Addresses are ip:port, except Config.Bind, which is passed on
// as configured. A packet socket must accept a *net.UDPAddr as destination. If a Network
// has the methods LookupNetIP and LookupSRV of [net.Resolver], they look up
// the names to join through; otherwise the system does.
type Network interface {
	ListenPacket(addr string) (net.PacketConn, error)
	Listen(addr string) (net.Listener, error)
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// systemNetwork is UDP and TCP.
type systemNetwork struct{ dialer net.Dialer }

// packetBuffer is how many bytes the kernel should hold for a reader that is late;
// it grants less if its own limit is lower.
const packetBuffer = 2 << 20

func (*systemNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil, err
	}
	if u, ok := c.(*net.UDPConn); ok {
		u.SetReadBuffer(packetBuffer) // an advert lost for want of room is repaired; no reason to fail
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
	// A free stream port may be taken for packets: then another one is tried.
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

// advertised returns the address to tell others, from what was configured and
// what was bound.
func advertised(configured string, bound netip.AddrPort) (netip.AddrPort, error) {
	if configured == "" {
		ip, err := bound.Addr(), error(nil)
		if ip.IsUnspecified() {
			ip, err = interfaceAddress()
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
	if err != nil || a.IP == nil {
		return netip.AddrPort{}, fmt.Errorf("advertise %q: no address for %q: %w", configured, host, err)
	}
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), cmp.Or(ap.Port(), bound.Port())), nil
}

// interfaceAddress returns the address of this machine at which others most likely
// reach it: a private IPv4 address, or else a public one, or else IPv6.
func interfaceAddress() (netip.Addr, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no advertise address set, and the interfaces cannot be read: %w", err)
	}
	best, rank := netip.Addr{}, 0
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		ip, r := p.Addr().Unmap(), 0
		switch {
		case ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast():
			continue
		case ip.Is4() && ip.IsPrivate():
			r = 4
		case ip.Is4():
			r = 3
		case ip.IsPrivate():
			r = 2
		default:
			r = 1
		}
		if r > rank {
			best, rank = ip, r
		}
	}
	if rank == 0 {
		return netip.Addr{}, errors.New("bound to every address, but this machine has none that others could reach: set the advertise address")
	}
	return best, nil
}
