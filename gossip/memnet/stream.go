package memnet

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// window is how many bytes a stream holds in one direction before its writer
// waits.
const window = 256 << 10

// backlog is how many connections wait to be accepted before more are refused.
const backlog = 512

type listener struct {
	host  *Host
	local netip.AddrPort

	waiter
	queue  []*conn
	closed bool
}

// Listen opens a stream listener. Port 0 picks a free one.
func (h *Host) Listen(addr string) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	port, err := h.port("tcp", addr, func(p uint16) bool { return h.listeners[p] != nil })
	if err != nil {
		return nil, h.opError("listen", "tcp", addr, err)
	}
	l := &listener{host: h, local: netip.AddrPortFrom(h.addr, port)}
	l.ready.L = &l.mu
	h.listeners[port] = l
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && (len(l.queue) == 0 || l.host.net.frozen(l.host.addr)) {
		l.ready.Wait()
	}
	if l.closed {
		return nil, l.host.opError("accept", "tcp", l.local.String(), net.ErrClosed)
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	return c, nil
}

func (l *listener) push(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.queue) >= backlog {
		return false
	}
	l.queue = append(l.queue, c)
	l.ready.Broadcast()
	return true
}

func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return l.host.opError("close", "tcp", l.local.String(), net.ErrClosed)
	}
	l.closed = true
	waiting := l.queue
	l.queue = nil
	l.ready.Broadcast()
	l.mu.Unlock()

	l.host.net.mu.Lock()
	delete(l.host.listeners, l.local.Port())
	l.host.net.mu.Unlock()
	for _, c := range waiting {
		c.reset()
	}
	return nil
}

func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.local) }

// Dial connects to a listener. Across a cut link it waits for the link or ctx.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, h.opError("dial", "tcp", addr, err)
	}
	if err := h.net.reach(ctx, h.addr, to.Addr()); err != nil {
		return nil, h.opError("dial", "tcp", addr, err)
	}
	c, err := h.connect(to)
	if err != nil {
		return nil, h.opError("dial", "tcp", addr, err)
	}
	return c, nil
}

// reach waits for both directions of a link and for a round trip.
func (n *Network) reach(ctx context.Context, from, to netip.Addr) error {
	for {
		n.mu.Lock()
		cut := n.cut[link{from, to}] || n.cut[link{to, from}] || n.frozenLocked(from)
		changed := n.changed
		wait := n.conditionsOf(link{from, to}).Latency + n.conditionsOf(link{to, from}).Latency
		n.mu.Unlock()
		if cut {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return os.ErrDeadlineExceeded
			}
		}
		if wait > 0 {
			t := time.NewTimer(wait)
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				return os.ErrDeadlineExceeded
			}
		}
		return ctx.Err()
	}
}

func (h *Host) connect(to netip.AddrPort) (net.Conn, error) {
	h.net.mu.Lock()
	peer := h.net.hosts[to.Addr()]
	var l *listener
	if peer != nil {
		l = peer.listeners[to.Port()]
	}
	if l == nil {
		h.net.mu.Unlock()
		if peer == nil {
			return nil, os.NewSyscallError("connect", syscall.EHOSTUNREACH)
		}
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	port, err := h.ephemeral(func(uint16) bool { return false })
	if err != nil {
		h.net.mu.Unlock()
		return nil, err
	}
	local := netip.AddrPortFrom(h.addr, port)
	there, back := newPipe(h.net, link{h.addr, to.Addr()}), newPipe(h.net, link{to.Addr(), h.addr})
	there.back, back.back = back, there
	near := &conn{host: h, local: local, remote: to, in: back, out: there}
	far := &conn{host: peer, local: to, remote: local, in: there, out: back}
	h.conns[near] = struct{}{}
	peer.conns[far] = struct{}{}
	h.net.mu.Unlock()
	if !l.push(far) {
		near.reset()
		far.reset()
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return near, nil
}

// conn is one end of a stream.
type conn struct {
	host          *Host
	local, remote netip.AddrPort
	in, out       *pipe
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	if err != nil && err != io.EOF {
		err = c.host.opError("read", "tcp", c.remote.String(), err)
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	if err != nil {
		err = c.host.opError("write", "tcp", c.remote.String(), err)
	}
	return n, err
}

// CloseWrite ends what the other side reads.
func (c *conn) CloseWrite() error {
	c.out.finish()
	return nil
}

func (c *conn) Close() error {
	c.out.finish()
	c.in.abandon(net.ErrClosed, syscall.EPIPE)
	c.out.closeWriter()
	c.forget()
	return nil
}

// reset breaks the stream for both ends at once.
func (c *conn) reset() {
	c.in.reset()
	c.out.reset()
	c.forget()
}

func (c *conn) forget() {
	c.host.net.mu.Lock()
	delete(c.host.conns, c)
	c.host.net.mu.Unlock()
}

func (c *conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	c.out.setWriteDeadline(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.setWriteDeadline(t)
	return nil
}
