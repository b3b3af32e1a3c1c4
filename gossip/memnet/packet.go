package memnet

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// packetQueue is how many packets a socket holds for its reader before it drops
// what arrives.
const packetQueue = 4096

// maxPacket is the length of the longest packet, in bytes.
const maxPacket = 65507

type packet struct {
	data []byte
	from *net.UDPAddr
}

// PacketConn is a packet socket of a host.
type PacketConn struct {
	host  *Host
	local netip.AddrPort

	waiter
	queue  []packet
	closed bool
	read   deadline
}

var _ net.PacketConn = (*PacketConn)(nil)

// ListenPacket opens a packet socket. Port 0 picks a free one.
func (h *Host) ListenPacket(addr string) (net.PacketConn, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	port, err := h.port("udp", addr, func(p uint16) bool { return h.packets[p] != nil })
	if err != nil {
		return nil, h.opError("listen", "udp", addr, err)
	}
	p := &PacketConn{host: h, local: netip.AddrPortFrom(h.addr, port)}
	p.ready.L = &p.mu
	h.packets[port] = p
	return p, nil
}

// WriteTo sends a packet. It never blocks, and that nobody receives is no error.
func (p *PacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	dst, err := netip.ParseAddrPort(to.String())
	if err != nil {
		return 0, p.host.opError("write", "udp", to.String(), err)
	}
	if len(b) > maxPacket {
		return 0, p.host.opError("write", "udp", to.String(), os.ErrInvalid)
	}
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return 0, p.host.opError("write", "udp", to.String(), net.ErrClosed)
	}
	data := append([]byte(nil), b...)
	from := net.UDPAddrFromAddrPort(p.local)
	for _, delay := range p.host.net.schedule(link{p.local.Addr(), dst.Addr()}, len(b)) {
		if delay > 0 {
			time.AfterFunc(delay, func() { p.host.net.deliver(packet{data, from}, dst) })
		} else {
			p.host.net.deliver(packet{data, from}, dst)
		}
	}
	return len(b), nil
}

// schedule decides how often and after what delays a packet arrives.
func (n *Network) schedule(l link, size int) []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.traffic.Packets++
	n.traffic.Bytes += int64(size)
	c := n.conditionsOf(l)
	if n.cut[l] || n.frozenLocked(l.from) || c.Loss > 0 && n.rng.Float64() < c.Loss {
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

func (n *Network) deliver(pk packet, dst netip.AddrPort) {
	n.mu.Lock()
	var p *PacketConn
	if h := n.hosts[dst.Addr()]; h != nil {
		p = h.packets[dst.Port()]
	}
	n.mu.Unlock()
	if p == nil || !p.push(pk) {
		n.mu.Lock()
		n.traffic.Dropped++
		n.mu.Unlock()
	}
}

func (p *PacketConn) push(pk packet) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.queue) >= packetQueue {
		return false
	}
	p.queue = append(p.queue, pk)
	p.ready.Broadcast()
	return true
}

// ReadFrom waits for a packet. What does not fit b is lost.
func (p *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.closed:
			return 0, nil, p.host.opError("read", "udp", p.local.String(), net.ErrClosed)
		case p.read.expired:
			return 0, nil, p.host.opError("read", "udp", p.local.String(), os.ErrDeadlineExceeded)
		case len(p.queue) > 0 && !p.host.net.frozen(p.local.Addr()):
			pk := p.queue[0]
			p.queue = p.queue[1:]
			return copy(b, pk.data), pk.from, nil
		}
		p.ready.Wait()
	}
}

// Close closes the socket; readers return.
func (p *PacketConn) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return p.host.opError("close", "udp", p.local.String(), net.ErrClosed)
	}
	p.closed = true
	p.queue = nil
	p.read.stop()
	p.ready.Broadcast()
	p.mu.Unlock()

	p.host.net.mu.Lock()
	delete(p.host.packets, p.local.Port())
	p.host.net.mu.Unlock()
	return nil
}

// LocalAddr returns the socket's address, a *net.UDPAddr.
func (p *PacketConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(p.local) }

// SetDeadline is SetReadDeadline: writes never wait.
func (p *PacketConn) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetReadDeadline applies to waiting and later reads.
func (p *PacketConn) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read.set(t, &p.ready)
	return nil
}

// SetWriteDeadline does nothing: writes never wait.
func (p *PacketConn) SetWriteDeadline(time.Time) error { return nil }

// A deadline is guarded by the lock of the cond it wakes.
type deadline struct {
	expired bool
	timer   *time.Timer
	calls   uint64 // counts calls of set, so that an old timer does nothing
}

func (d *deadline) set(t time.Time, c *sync.Cond) {
	d.stop()
	d.calls++
	d.expired = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.expired = true
		c.Broadcast()
		return
	}
	mine := d.calls
	d.timer = time.AfterFunc(wait, func() {
		c.L.Lock()
		defer c.L.Unlock()
		if d.calls == mine {
			d.expired = true
			c.Broadcast()
		}
	})
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
