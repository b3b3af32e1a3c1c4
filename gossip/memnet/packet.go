package memnet

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// packetQueue is how many packets a socket holds for its reader. More are dropped.
const packetQueue = 4096

// maxPacket is the length of the longest packet, in bytes.
const maxPacket = 65507

type packet struct {
	data []byte
	from *net.UDPAddr
}

// packetConn is a packet socket of a host.
type packetConn struct {
	host  *Host
	local netip.AddrPort

	ready  sync.Cond // of Network.mu, which guards the following fields
	queue  []packet
	closed bool
	read   deadline
}

// ListenPacket opens a packet socket. Port 0 picks a free one.
func (h *Host) ListenPacket(addr string) (net.PacketConn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	port, err := h.port("udp", addr, func(p uint16) bool { return h.packets[p] != nil })
	if err != nil {
		return nil, opError("listen", "udp", addr, err)
	}
	p := &packetConn{host: h, local: netip.AddrPortFrom(h.addr, port), ready: sync.Cond{L: &h.net.mu}}
	h.packets[port] = p
	return p, nil
}

// WriteTo sends a packet. It never blocks, and returns no error if the packet is lost.
func (p *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	dst, err := netip.ParseAddrPort(to.String())
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
	case len(b) > maxPacket:
		err = os.ErrInvalid
	case p.closed:
		err = net.ErrClosed
	}
	if err != nil {
		return 0, opError("write", "udp", to.String(), err)
	}
	n.traffic.Packets++
	n.traffic.Bytes += int64(len(b))
	pk := packet{bytes.Clone(b), net.UDPAddrFromAddrPort(p.local)}
	for _, delay := range n.schedule(link{p.local.Addr(), dst.Addr()}) {
		if delay <= 0 {
			n.deliver(pk, dst)
			continue
		}
		time.AfterFunc(delay, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.deliver(pk, dst)
		})
	}
	return len(b), nil
}

// schedule returns the delays after which a packet arrives: none if it is lost, two if it is
// duplicated. It is called with n.mu held.
func (n *Network) schedule(l link) []time.Duration {
	c := n.conditionsOf(l)
	if n.cut[l] || n.frozen(l.from) || c.Loss > 0 && n.rng.Float64() < c.Loss {
		n.traffic.Lost++
		return nil
	}
	delay := func() time.Duration {
		if c.Jitter <= 0 {
			return c.Latency
		}
		return c.Latency + time.Duration(n.rng.Int64N(int64(c.Jitter)))
	}
	delays := []time.Duration{delay()}
	if c.Duplicate > 0 && n.rng.Float64() < c.Duplicate {
		delays = append(delays, delay())
	}
	return delays
}

// deliver queues a packet at its destination. It is called with n.mu held.
func (n *Network) deliver(pk packet, dst netip.AddrPort) {
	var p *packetConn
	if h := n.hosts[dst.Addr()]; h != nil {
		p = h.packets[dst.Port()]
	}
	if p == nil || len(p.queue) >= packetQueue {
		n.traffic.Dropped++
		return
	}
	p.queue = append(p.queue, pk)
	p.ready.Broadcast()
}

// ReadFrom waits for a packet. Bytes that do not fit b are lost.
func (p *packetConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		switch {
		case p.closed:
			return 0, nil, opError("read", "udp", p.local.String(), net.ErrClosed)
		case p.read.expired:
			return 0, nil, opError("read", "udp", p.local.String(), os.ErrDeadlineExceeded)
		case len(p.queue) > 0 && !p.host.frozen:
			pk := p.queue[0]
			p.queue = p.queue[1:]
			return copy(b, pk.data), pk.from, nil
		}
		p.ready.Wait()
	}
}

// Close closes the socket; readers return.
func (p *packetConn) Close() error {
	p.host.net.mu.Lock()
	defer p.host.net.mu.Unlock()
	if p.closed {
		return opError("close", "udp", p.local.String(), net.ErrClosed)
	}
	p.close()
	return nil
}

// close closes the socket. It is called with Network.mu held.
func (p *packetConn) close() {
	p.closed, p.queue = true, nil
	p.read.stop()
	p.ready.Broadcast()
	delete(p.host.packets, p.local.Port())
}

func (p *packetConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(p.local) }

// SetDeadline is SetReadDeadline: writes never wait.
func (p *packetConn) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

func (p *packetConn) SetReadDeadline(t time.Time) error {
	p.host.net.mu.Lock()
	defer p.host.net.mu.Unlock()
	p.read.set(t, &p.ready)
	return nil
}

func (p *packetConn) SetWriteDeadline(time.Time) error { return nil }
