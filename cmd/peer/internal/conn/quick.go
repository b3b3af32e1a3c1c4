package conn

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// quick serves the plain requests of a connection. What the server does for a request beside that takes longer than a
// hit, and half as long as a miss: it reads it through two buffers, has another goroutine watch for the client's leave,
// and sets five deadlines.
//
// The server reads a request itself if it is not [plain], or if there is no room for it at this moment. As
// long as it has read nothing but whole requests of that kind, the next byte is the first of a request.
// Beyond that nobody but the server knows where one begins.
type quick struct {
	handler http.Handler
	may     func() bool
	blank   *http.Request // what all requests have
	plain   plain

	ahead     []byte               // was read, and goes to the server next
	elsewhere bool                 // the next byte may not be the first of a request
	begun     []byte               // what the server has of a request that may be plain; nil = of none
	idle      time.Duration        // how long the server waits for a request,
	rest      time.Duration        // and for the rest of its header; 0 = for ever
	deadline  atomic.Int64         // of reads, as it was set last, Unix nanoseconds
	life      atomic.Pointer[life] // of the request under way; nil = there is none
	watched   atomic.Bool          // the gate looks for the client's leave
	taken     atomic.Bool          // its handler closes the connection
	closing   atomic.Bool          // close the connection after it
}

// mostBegun is up to how many bytes of a request are followed, which is what the server reads at once.
const mostBegun = 4 << 10

// Quickly has plain requests on a connection served by handler as soon as they are read, without the server, as long as
// may reports true. ctx is that of [Context], for a connection that a gate counts; on others, TLS above all, this does
// nothing. Call it before the server reads.
func Quickly(ctx context.Context, handler http.Handler, may func() bool) {
	c := Of(ctx)
	if c == nil || c.pass.gate == nil {
		return
	}
	blank := http.Request{Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, RemoteAddr: c.RemoteAddr().String()}
	c.quick = &quick{handler: handler, may: may, blank: blank.WithContext(ctx)}
	if s, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok {
		c.quick.idle = cmp.Or(s.IdleTimeout, s.ReadTimeout)
		c.quick.rest = cmp.Or(s.ReadHeaderTimeout, s.ReadTimeout)
	}
}

// answer answers the requests that come, beginning with those in p[:n], until there is something for the server: that
// is then in p[:n].
func (c *Conn) answer(p []byte, n int) (int, error) {
	q := c.quick
	for answered := false; ; answered = true {
		size := q.plain.frame(p[:n])
		done, err := c.serve(p[:size])
		switch {
		case err != nil:
			return 0, err
		case !done && size == n: // what comes next is the first byte of another
			return n, nil
		case !done:
			q.elsewhere = true
			if q.follow(p[:n]); answered && q.rest > 0 {
				err = c.SetReadDeadline(time.Now().Add(q.rest))
			}
			return n, err
		}
		now := time.Now()
		c.pass.since.Store(now.UnixNano())
		c.pass.serve()
		c.pass.host.credit.earn(now)
		if n = copy(p, p[size:n]); n > 0 {
			runtime.Gosched() // there may be many, and it is the turn of others
		}
		if q.idle > 0 && time.Duration(q.deadline.Load()-now.UnixNano()) < q.idle/4*3 {
			c.SetReadDeadline(now.Add(q.idle))
		}
		c.emptyLines = maxEmptyLines
		if n, err = c.begin(p, n); n == 0 || err != nil {
			return n, err
		}
	}
}

const (
	preface   = "PRI * HTTP/2.0" // as much as this the server reads of a connection first
	mostFirst = 2 << 10          // and as much in all is read then, for a plain request
)

// first goes on to read where the server wants to see in p whether a connection is of HTTP/2, so that its first request
// can be served without the server, too. It is bounded by the same deadline.
func (c *Conn) first(p []byte) (n int, err error) {
	all, have := p, len(p)
	if string(p[:len(method)]) == method {
		all = make([]byte, mostFirst)
		copy(all, p)
		n, _ = c.Conn.Read(all[have:]) // an error comes again
		have += n
	}
	have, err = c.answer(all, have)
	have, err = c.heard(all, have, err)
	n = copy(p, all[:have])
	c.quick.ahead = all[n:have]
	return n, err
}

// follow notes what the server gets. If that is one plain request in all, what comes next is the first byte of
// another.
func (q *quick) follow(p []byte) {
	q.begun = append(q.begun, p...)
	switch size := q.plain.frame(q.begun); {
	case size == len(q.begun):
		q.elsewhere, q.begun = false, nil
	case size > 0 || len(q.begun) > mostBegun:
		q.begun = nil
	}
}

// serve has the request that p consists of answered, and reports whether it was. After an error, which is
// [io.EOF], so that the server adds nothing, the connection must be closed.
func (c *Conn) serve(p []byte) (done bool, err error) {
	q, place := c.quick, &c.pass
	if len(p) == 0 || !q.may() {
		return false, nil
	}
	l := &life{Context: q.blank.Context(), c: c}
	q.life.Store(l)
	defer q.over(l, &err)
	r := q.plain.request(q.blank.WithContext(l), p)
	if r == nil || place.gate.closing.Load() || !place.gate.admits(&place.request, perRequest) {
		return false, nil
	}
	defer place.gate.end(&place.request, place.request.turn.Load())
	place.since.Store(0)
	w := &reply{c: c, header: make(http.Header)}
	q.handler.ServeHTTP(w, r)
	if w.end() != nil {
		return false, io.EOF
	}
	return true, nil
}

// over ends a request, and the connection if [Conn.Close] was called meanwhile.
func (q *quick) over(l *life, err *error) {
	q.life.Store(nil)
	l.end()
	if q.closing.Load() {
		*err = io.EOF
	}
}

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.quick != nil {
		c.quick.deadline.Store(max(0, t.UnixNano())) // of the zero time, too
	}
	return c.Conn.SetReadDeadline(t)
}

// Drain waits until requests are answered that no server knows of, see [Quickly], and ends their connections when
// ctx ends. It is called after CloseUnused and [net/http.Server.Shutdown].
func (g *Gate) Drain(ctx context.Context) {
	for { // until ctx ends at the latest
		late, under := ctx.Err() != nil, false
		g.mu.Lock()
		for _, c := range g.conns.list {
			if c.quick != nil && c.quick.life.Load() != nil {
				under = true
				if late {
					c.Conn.Close()
				}
			}
		}
		g.mu.Unlock()
		if late || !under {
			return
		}
		sleep(ctx, time.Second/100)
	}
}
