package memnet

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// backlog is how many connections may wait to be accepted. More are refused.
const backlog = 512

type listener struct {
	host  *Host
	local netip.AddrPort

	ready  sync.Cond // of Network.mu, which guards the following fields
	queue  []*conn
	closed bool
}

// Listen opens a stream listener. Port 0 picks a free one.
func (h *Host) Listen(addr string) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	port, err := h.port("tcp", addr, func(p uint16) bool { return h.listeners[p] != nil })
	if err != nil {
		return nil, opError("listen", "tcp", addr, err)
	}
	l := &listener{host: h, local: netip.AddrPortFrom(h.addr, port), ready: sync.Cond{L: &h.net.mu}}
	h.listeners[port] = l
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	for !l.closed && (len(l.queue) == 0 || l.host.frozen) {
		l.ready.Wait()
	}
	if l.closed {
		return nil, opError("accept", "tcp", l.local.String(), net.ErrClosed)
	}
	c := l.queue[0]
	l.queue = l.queue[1:]
	return c, nil
}

func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	if l.closed {
		return opError("close", "tcp", l.local.String(), net.ErrClosed)
	}
	l.close()
	return nil
}

// close closes the listener. It is called with Network.mu held.
func (l *listener) close() {
	for _, c := range l.queue {
		c.reset()
	}
	l.closed, l.queue = true, nil
	l.ready.Broadcast()
	delete(l.host.listeners, l.local.Port())
}

func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.local) }

// Dial connects to a listener. Across a cut link it waits for the link or ctx.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(addr)
	if err == nil {
		err = h.net.reach(ctx, h.addr, to.Addr())
	}
	if err != nil {
		return nil, opError("dial", "tcp", addr, err)
	}
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	c, err := h.connect(to)
	if err != nil {
		return nil, opError("dial", "tcp", addr, err)
	}
	return c, nil
}

// reach waits for both directions of a link and for a round trip.
func (n *Network) reach(ctx context.Context, from, to netip.Addr) error {
	for {
		n.mu.Lock()
		cut := n.cut[link{from, to}] || n.cut[link{to, from}] || n.frozen(from)
		changed := n.changed
		wait := n.conditionsOf(link{from, to}).Latency + n.conditionsOf(link{to, from}).Latency
		n.mu.Unlock()
		if !cut && wait <= 0 {
			return ctx.Err()
		}
		var arrived <-chan time.Time
		if !cut {
			changed, arrived = nil, time.After(wait)
		}
		select {
		case <-changed:
		case <-arrived:
			return ctx.Err()
		case <-ctx.Done():
			return os.ErrDeadlineExceeded
		}
	}
}

// connect is called with net.mu held.
func (h *Host) connect(to netip.AddrPort) (net.Conn, error) {
	peer := h.net.hosts[to.Addr()]
	if peer == nil {
		return nil, os.NewSyscallError("connect", syscall.EHOSTUNREACH)
	}
	l := peer.listeners[to.Port()]
	if l == nil || len(l.queue) >= backlog {
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	port, err := h.ephemeral(func(uint16) bool { return false })
	if err != nil {
		return nil, err
	}
	local := netip.AddrPortFrom(h.addr, port)
	there, back := newPipe(h.net, link{h.addr, to.Addr()}), newPipe(h.net, link{to.Addr(), h.addr})
	there.back, back.back = back, there
	near := &conn{host: h, local: local, remote: to, in: back, out: there}
	far := &conn{host: peer, local: to, remote: local, in: there, out: back}
	h.conns[near] = struct{}{}
	peer.conns[far] = struct{}{}
	l.queue = append(l.queue, far)
	l.ready.Broadcast()
	return near, nil
}

// conn is one end of a stream.
type conn struct {
	host          *Host
	local, remote netip.AddrPort
	in, out       *pipe
}

func (c *conn) Read(b []byte) (n int, err error) {
	c.locked(func() { n, err = c.in.read(b) })
	if err != nil && err != io.EOF {
		err = opError("read", "tcp", c.remote.String(), err)
	}
	return n, err
}

func (c *conn) Write(b []byte) (n int, err error) {
	c.locked(func() { n, err = c.out.write(b) })
	if err != nil {
		err = opError("write", "tcp", c.remote.String(), err)
	}
	return n, err
}

// Peek returns how many bytes a Read would return now, and the error of one that has none. Both are zero if it would
// wait.
func (c *conn) Peek() (n int, err error) {
	c.locked(func() {
		switch p := c.in; {
		case p.readErr != nil:
			err = p.readErr
		case !p.arrived():
		case len(p.chunks) > 0:
			n = len(p.chunks[0].data)
		default:
			err = io.EOF
		}
	})
	return n, err
}

// CloseWrite ends the stream for the reader at the other side.
func (c *conn) CloseWrite() error { return c.locked(c.out.finish) }

func (c *conn) Close() error {
	return c.locked(func() {
		c.out.finish()
		c.in.abandon(net.ErrClosed, syscall.EPIPE)
		c.out.closeWriter()
		delete(c.host.conns, c)
	})
}

// reset resets the stream for both ends at once. It is called with Network.mu held.
func (c *conn) reset() {
	c.in.reset()
	c.out.reset()
	delete(c.host.conns, c)
}

func (c *conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

func (c *conn) SetDeadline(t time.Time) error {
	return c.locked(func() {
		c.in.readBy.set(t, &c.in.ready)
		c.out.writeBy.set(t, &c.out.ready)
	})
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.locked(func() { c.in.readBy.set(t, &c.in.ready) })
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.locked(func() { c.out.writeBy.set(t, &c.out.ready) })
}

func (c *conn) locked(f func()) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	f()
	return nil
}
