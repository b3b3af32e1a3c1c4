package http1

import (
	"cmp"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

const defaultAge = 5 * time.Minute

// A conn is a connection to a host. One request uses it at a time.
type conn struct {
	net.Conn
	t      *Transport
	host   *host
	addr   netip.Addr           // that it was made to; none = to a name
	tls    *tls.ConnectionState // nil = it is not encrypted here
	below  *ending              // what TLS reads from; nil = as tls
	look   func() arrival       // tells what has come without taking it; nil = that cannot be told
	born   time.Time
	since  time.Time // when it was kept last
	closed atomic.Bool

	// What was read, and is used next, is buf[from:to]. buf is nil while the connection is kept.
	buf      []byte
	from, to int
	own      *[bufferSize]byte // buf, or what it was before it had to grow
}

func (t *Transport) newConn(h *host, raw net.Conn, addr netip.Addr) *conn {
	c := &conn{Conn: Direct(raw), t: t, host: h, addr: addr, born: time.Now()}
	below := raw
	for of, ok := below.(interface{ NetConn() net.Conn }); ok; of, ok = below.(interface{ NetConn() net.Conn }) {
		below = of.NetConn()
	}
	switch of := below.(type) {
	case interface{ Peek() (int, error) }:
		c.look = func() arrival { return arrived(of.Peek()) }
	case syscall.Conn:
		if raw, err := of.SyscallConn(); err == nil && canPeek {
			c.look = func() arrival { return peek(raw) }
		}
	}
	t.pool.mu.Lock()
	h.uses++
	t.pool.mu.Unlock()
	return c
}

// Close closes the connection. It may be called at any time, and again.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.t.done(c.host)
	return c.Conn.Close()
}

// handOver returns the connection below, which its new owner closes.
func (c *conn) handOver() net.Conn {
	c.closed.Store(true)
	c.t.done(c.host)
	return c.Conn
}

// expired reports whether a kept connection is not to be used again.
func (c *conn) expired(now time.Time) bool {
	return now.Sub(c.born) > cmp.Or(c.t.MaxAge, defaultAge) || now.Sub(c.since) > idleTimeout
}

// What has come on a connection that is kept.
type arrival int

const (
	nothing arrival = iota
	something
	itsEnd
)

// quiet tells what has come on a kept connection. TLS has nothing to say there either: what servers send of it they
// send before the first answer.
func (c *conn) quiet() arrival {
	if c.look != nil {
		return c.look()
	}
	defer c.SetReadDeadline(time.Time{})
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return itsEnd
	}
	var one [1]byte
	return arrived(c.Conn.Read(one[:]))
}

// arrived tells what has come by n bytes and an error.
func arrived(n int, err error) arrival {
	switch {
	case n > 0:
		return something
	case err == nil, isTimeout(err):
		return nothing
	}
	return itsEnd
}

// buffer takes a buffer for an exchange.
func (c *conn) buffer() {
	c.own, _ = c.t.buffers.Get().(*[bufferSize]byte)
	if c.own == nil {
		c.own = new([bufferSize]byte)
	}
	c.buf, c.from, c.to = c.own[:], 0, 0
}

// release gives the buffer back. Only the goroutine that reads may call it.
func (c *conn) release() {
	if c.own != nil {
		c.t.buffers.Put(c.own)
	}
	c.buf, c.own, c.from, c.to = nil, nil, 0, 0
}

// fill reads more into the buffer, which grows up to most bytes. It returns errLong beyond that.
func (c *conn) fill(most int) error {
	switch {
	case c.from == c.to:
		c.from, c.to = 0, 0
	case c.to < len(c.buf):
	case c.from > 0:
		c.from, c.to = 0, copy(c.buf, c.buf[c.from:c.to])
	case len(c.buf) >= most:
		return errLong
	default:
		longer := make([]byte, min(2*len(c.buf), most))
		copy(longer, c.buf)
		c.buf = longer
	}
	n, err := c.Conn.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}

// rest is what was read and not yet used.
func (c *conn) rest() []byte { return c.buf[c.from:c.to] }

// An ending is a connection that says whether its other end has closed it. Package tls takes that for the end of what
// was sent, although only an alert says so (RFC 8446 section 6.1).
type ending struct {
	net.Conn
	ended bool
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Conn.Read(p)
	e.ended = e.ended || err == io.EOF
	return n, err
}
