package conn

import (
	"container/list"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/budget"
)

// A request is one under way that a gate counts. Its fields are guarded by the gate's mu.
type request struct {
	from    netip.Prefix
	coded   bool // by HTTP/2
	cost    int64
	waiting atomic.Int64  // since when the client takes nothing of the answer, Unix nanoseconds; 0 = it does
	place   *list.Element // in those of the gate; nil = it is over

	ending sync.Mutex
	cut    func() // ends the answer; nil = the handler has returned. Guarded by ending
}

// HTTP2 returns the limits of an HTTP/2 connection: what it may send of the bodies of its requests before
// they are read, and how many requests it may have. A request that the gate will refuse has taken some
// memory by then, so a peer with little has fewer: 38 in 256 MiB, 100 from 700 MiB on.
func HTTP2(b *budget.Budget) *http.HTTP2Config {
	streams := int(max(10, min(100, b.Total()>>22)))
	return &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: perWindow, MaxReceiveBufferPerStream: perWindow}
}

// stalled is how long a client takes nothing of an answer before that may be cut for another's sake. It
// is a round trip or two, since the longest wait ends first.
const stalled = time.Second / 4

// Requests returns a handler that admits requests only while there is memory for them. If there is
// none, the one whose client has taken nothing of its answer for longest is cut, or else the new one
// is answered 503. A request by HTTP/2 also counts as a connection of its address.
func (g *Gate) Requests(next http.Handler) http.Handler {
	if g.limits.Requests == nil && g.limits.Conns == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{from: prefixOf(r.RemoteAddr), coded: r.ProtoMajor > 1, cost: perRequest}
		switch {
		case r.Method == http.MethodConnect:
			q.cost = perTunnel
		case r.Body == nil || r.Body == http.NoBody:
		case q.coded:
			q.cost += perWindow
		default:
			q.cost += perUpload
		}
		c := Of(r.Context())
		if c != nil && !q.coded {
			q.cut = func() { c.Conn.Close() }
		} else {
			deadline := http.NewResponseController(w).SetWriteDeadline
			q.cut = func() { deadline(time.Unix(1, 0)) }
		}
		if !g.begin(q) {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Content-Length", "0") // a body might find no window, and wait
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer g.end(q)
		if c != nil && !q.coded {
			c.pass.request.Store(q)
			defer c.pass.request.Store(nil)
		} else {
			w = watched{w, q}
		}
		next.ServeHTTP(w, r)
	})
}

// begin counts a request, and reports whether there is room.
func (g *Gate) begin(q *request) bool {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for { // each round but the last closes an idle connection or cuts a request
		h := g.host(q.from)
		own, all := g.full(h)
		if q.coded && (own || all) {
			if !g.closeIdle(h, own, now) {
				break
			}
			continue
		}
		own = h.requests > 0 && h.requests+q.cost > half(g.limits.Requests)
		if !own && g.limits.Requests.Take(q.cost) {
			h.requests += q.cost
			g.place(h, q, 1)
			q.place = g.requests.PushBack(q)
			return true
		}
		if !g.makeRoom(q.from, own, now) {
			break
		}
	}
	g.refuse(q.from)
	return false
}

// place counts the place of a request.
func (g *Gate) place(h *host, q *request, n int) {
	if q.coded {
		h.used += n
		g.used += n
	}
}

// looked is how many requests are looked at to find one to cut.
const looked = 64

// makeRoom cuts the request whose client has taken nothing for longest, of one address if own is set,
// and reports whether there was any. Its memory counts as free at once: its handler is about to end.
// It looks at a few requests at a time, and at others the next time.
func (g *Gate) makeRoom(from netip.Prefix, own bool, now time.Time) bool {
	var longest *request
	since := now.Add(-stalled).UnixNano()
	for range min(looked, g.requests.Len()) {
		e := g.requests.Front()
		g.requests.MoveToBack(e)
		q := e.Value.(*request)
		if own && q.from != from {
			continue
		}
		if t := q.waiting.Load(); t != 0 && t < since {
			longest, since = q, t
		}
	}
	if longest == nil {
		return false
	}
	g.over(longest)
	g.dropped.Add(1)
	go longest.end(true)
	return true
}

// end ends the answer if that is wanted, and prevents it later.
func (q *request) end(answer bool) {
	q.ending.Lock()
	defer q.ending.Unlock()
	if answer && q.cut != nil {
		q.cut()
	}
	q.cut = nil
}

// end counts a request no more.
func (g *Gate) end(q *request) {
	q.end(false)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over(q)
}

// over is end with g.mu held. It does nothing for a request that was cut.
func (g *Gate) over(q *request) {
	if q.place == nil {
		return
	}
	g.requests.Remove(q.place)
	q.place = nil
	g.limits.Requests.Give(q.cost)
	h := g.hosts[q.from]
	h.requests -= q.cost
	g.place(h, q, -1)
	g.tidy(q.from)
}

// wait notes that the client is waited for, or no more.
func (q *request) wait(on bool) {
	switch {
	case q == nil:
	case on:
		q.waiting.Store(time.Now().UnixNano())
	default:
		q.waiting.Store(0)
	}
}

// watched notes when a client takes nothing of an answer by HTTP/2 or TLS.
type watched struct {
	http.ResponseWriter
	q *request
}

// Write implements [io.Writer].
func (w watched) Write(p []byte) (int, error) {
	w.q.wait(true)
	defer w.q.wait(false)
	return w.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (w watched) Flush() { w.FlushError() }

// FlushError is for [http.ResponseController].
func (w watched) FlushError() error {
	w.q.wait(true)
	defer w.q.wait(false)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (w watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
