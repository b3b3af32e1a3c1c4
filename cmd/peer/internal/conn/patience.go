package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/summarycache/summarycache/gossip/http1"
)

// looks is how often a wait for a client is checked within its limit: the limit is kept to a
// quarter.
const looks = 4

// patience bounds how long a client may take nothing of what it is sent while others may need its
// place. It sets the write deadline a little ahead, again and again: when the deadline passes, that is
// no error if the client took something, or if there is room. Setting another write deadline on the connection, as
// [net/http.Hijacker] does, ends this.
type patience struct {
	limit    time.Duration // 0 = a client may take as long as it likes
	off      atomic.Bool
	deadline time.Time // as it is set; of the goroutine that writes
}

// Patient returns c as a [Conn] whose writes fail when the other end has taken nothing for the
// time limit; see [Listen].
func Patient(c net.Conn, limit time.Duration) *Conn {
	wrapped := &Conn{Conn: http1.Direct(c), emptyLines: maxEmptyLines}
	wrapped.patience.limit = limit
	if of, ok := c.(syscall.Conn); ok {
		wrapped.raw, _ = of.SyscallConn()
	}
	return wrapped
}

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	c.patience.off.Store(true)
	return c.Conn.SetDeadline(t)
}

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.patience.off.Store(true)
	return c.Conn.SetWriteDeadline(t)
}

// patiently calls write until all of n bytes are written or, if n < 0, until write returns no
// error. Each call goes on after what was done, and returns how much it did. patiently
// ends with an error other than a timeout, or when the client took nothing for the
// limit and its place may be needed. Until then the system's keep-alive probes show whether the
// client is still there.
func (c *Conn) patiently(n int64, write func(done int64) (int64, error)) (done int64, err error) {
	p, waiting := &c.patience, &c.pass.request.waiting
	moved := time.Now() // when the client took something last, or was first waited for
	waiting.Store(moved.UnixNano())
	defer waiting.Store(0)
	if p.limit <= 0 || p.off.Load() {
		return write(0)
	}
	look := p.limit / looks
	for now := moved; ; now = time.Now() {
		if left := p.deadline.Sub(now); left < look/2 {
			rest := p.limit - now.Sub(moved)
			if rest <= 0 { // it may stay for now
				rest = look
			}
			p.deadline = now.Add(min(look, max(rest, time.Millisecond)))
			if err := c.Conn.SetWriteDeadline(p.deadline); err != nil {
				return done, err
			}
		}
		k, err := write(done)
		done += k
		switch {
		case err == nil, !errors.Is(err, os.ErrDeadlineExceeded), p.off.Load():
			return done, err
		case n >= 0 && done >= n:
			return done, nil
		case k > 0:
			moved = time.Now()
			waiting.Store(moved.UnixNano())
		case time.Since(moved) >= p.limit && c.pass.crowded():
			return done, err
		}
	}
}

// crowded reports whether others may need the place of a connection: half of all places, or of those
// of its address, are taken. A connection that no gate counts must always make room.
func (p *pass) crowded() bool {
	g := p.gate
	if g == nil || g.limits.Conns == 0 {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return 2*g.conns.Len() > g.limits.Conns || g.limits.PerHost > 0 && 2*p.host.conns.Len() > g.limits.PerHost
}

// write writes p to the connection below.
func (c *Conn) write(p []byte) (int, error) {
	n, err := c.patiently(int64(len(p)), func(done int64) (int64, error) {
		k, err := c.Conn.Write(p[done:])
		return int64(k), err
	})
	return int(n), err
}

// copyFrom writes what comes from r.
func (c *Conn) copyFrom(r io.Reader) (int64, error) {
	if to, ok := c.Conn.(io.ReaderFrom); ok && (c.patience.limit <= 0 || c.patience.off.Load()) {
		return to.ReadFrom(r)
	}
	return io.Copy(writer{c}, r)
}

// writer is the writing side of a connection, piece by piece.
type writer struct{ c *Conn }

func (w writer) Write(p []byte) (int, error) { return w.c.write(p) }
