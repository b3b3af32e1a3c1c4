package conn

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// quick answers plain requests of a connection where the server would read them. What the server does for a
// request beside that takes longer than a hit: a goroutine that watches for the client's leave, five deadlines,
// a context, two buffers.
//
// The server reads a request itself if the handler does not answer it at once, or if it is not [plain]. As
// long as it has read nothing but whole requests of that kind, the next byte is the first of a request.
// Beyond that nobody but the server knows where one begins.
type quick struct {
	handler http.Handler
	blank   *http.Request // what all requests have
	plain   plain

	elsewhere bool          // the next byte may not be the first of a request
	begun     []byte        // what the server has of a request that may be plain; nil = of none
	idle      time.Duration // how long the server waits for a request,
	rest      time.Duration // and for the rest of its header; 0 = for ever
	deadline  atomic.Int64  // of reads, as it was set last, Unix nanoseconds
	failed    int           // requests in a row that the handler did not answer
	skip      int           // requests that it is not asked about
	under     atomic.Bool   // way is one that it is asked about
	closing   atomic.Bool   // close the connection after that
}

// mostBegun is up to how many bytes of a request are followed, which is what the server reads at once.
const mostBegun = 4 << 10

// Quickly has plain requests on a connection answered by handler as soon as they are read, if it answers them by
// [Conn.Answer]: see [AtOnce]. ctx is that of [Context], for a connection that a gate counts; on others, TLS
// above all, this does nothing. Call it before the server reads.
func Quickly(ctx context.Context, handler http.Handler) {
	c := Of(ctx)
	if c == nil || c.pass.gate == nil {
		return
	}
	blank := http.Request{Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, RemoteAddr: c.RemoteAddr().String()}
	c.quick = &quick{handler: handler, blank: blank.WithContext(ctx)}
	if s, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok {
		c.quick.idle = cmp.Or(s.IdleTimeout, s.ReadTimeout)
		c.quick.rest = cmp.Or(s.ReadHeaderTimeout, s.ReadTimeout)
	}
}

// An attempt is the [http.ResponseWriter] of a request that is answered by [Conn.Answer] or not at all. What is
// written to it is lost: then the server reads the request.
type attempt struct {
	c      *Conn
	header http.Header
}

func (a *attempt) Header() http.Header         { return a.header }
func (a *attempt) Write(p []byte) (int, error) { return len(p), nil }
func (a *attempt) WriteHeader(int)             {}

// AtOnce reports whether the request that w is for must be answered by [Conn.Answer] before the handler returns,
// and was not yet. If the handler cannot do that without waiting for anything but the disk and the client, it must
// return without a trace: the request comes again.
func AtOnce(w http.ResponseWriter) bool {
	a, ok := w.(*attempt)
	return ok && a.AtOnce()
}

// AtOnce is for handlers that don't know this package.
func (a *attempt) AtOnce() bool { return !a.c.replace }

// answer answers the requests that come, beginning with those in p[:n], until there is something for the server: that
// is then in p[:n].
func (c *Conn) answer(p []byte, n int) (int, error) {
	q := c.quick
	for answered := false; ; answered = true {
		size := q.plain.frame(p[:n])
		done, err := c.attempt(p[:size])
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
		c.pass.host.credit.earn(now)
		if n = copy(p, p[size:n]); n > 0 {
			runtime.Gosched() // there may be many, and it is the turn of others
			continue
		}
		if q.idle > 0 && time.Duration(q.deadline.Load()-now.UnixNano()) < q.idle/4*3 {
			c.SetReadDeadline(now.Add(q.idle))
		}
		if n, err = c.Conn.Read(p); n == 0 || err != nil {
			return n, err
		}
	}
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

// attempt asks the handler for an answer to the request that p consists of, and reports whether there was one. The
// more requests in a row it did not answer, the fewer it is asked about, one in 16 at least: what the server must
// read need not be read twice.
func (c *Conn) attempt(p []byte) (done bool, err error) {
	q, place := c.quick, &c.pass
	if len(p) == 0 {
		return false, nil
	}
	if q.skip > 0 {
		q.skip--
		return false, nil
	}
	q.under.Store(true)
	defer q.over(c, &err)
	r := q.plain.request(q.blank, p)
	if r == nil || place.gate.closing.Load() || !place.gate.admits(&place.request, perRequest) {
		return false, nil
	}
	defer place.gate.end(&place.request, place.request.turn.Load())
	since := place.since.Swap(0)
	q.handler.ServeHTTP(&attempt{c, make(http.Header)}, r)
	if done, c.replace = c.replace, false; done {
		q.failed = 0
		place.requests++
		return true, c.writeHead()
	}
	place.since.Store(since)
	q.failed = min(q.failed+1, 4)
	q.skip = 1<<q.failed - 1
	return false, nil
}

// over ends an attempt, and the connection if [Conn.Close] was called meanwhile.
func (q *quick) over(c *Conn, err *error) {
	q.under.Store(false)
	if q.closing.Load() {
		*err = cmp.Or(*err, net.ErrClosed)
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
			if c.quick != nil && c.quick.under.Load() {
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
		select {
		case <-time.After(time.Second / 100):
		case <-ctx.Done():
		}
	}
}
