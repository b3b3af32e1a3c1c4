package conn

import (
	"cmp"
	"container/list"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// A request is one under way that a gate counts. That of a connection of HTTP/1 is part of the connection, and
// used again and again.
type request struct {
	host    *host
	conn    *Conn         // nil = by HTTP/2, or by TLS
	coded   bool          // by HTTP/2
	cost    atomic.Int64  // bytes of memory
	waiting atomic.Int64  // since when the client takes nothing of the answer, Unix nanoseconds; 0 = it does
	turn    atomic.Uint64 // odd = under way
	place   *list.Element // in those of the gate, unless conn is set; guarded by the gate's mu

	ending sync.Mutex
	cut    func() // ends the answer, unless conn is set; nil = the handler has returned. Guarded by ending
}

// HTTP2 returns the limits of an HTTP/2 connection: what it may send of the bodies of its requests before
// they are read, and how many requests it may have. A request that the gate will refuse has taken some
// memory by then, so a peer with little has fewer: 38 in 256 MiB, 100 from 700 MiB on. broken hears, in a word or two of
// net/http's, what a client did against HTTP/2; it must not block.
func HTTP2(b *budget.Budget, broken func(how string)) *http.HTTP2Config {
	streams := int(max(10, min(100, b.Total()>>22)))
	return &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: perWindow, MaxReceiveBufferPerStream: perWindow, CountError: broken}
}

// stalled is how long a client takes nothing of an answer before that may be cut for another's sake. It
// is a round trip or two, since the longest wait ends first.
const stalled = time.Second / 4

// Requests returns a handler that admits requests only while there is memory for them. If there is
// none, the one whose client has taken nothing of its answer for longest is cut, of an address that holds as
// much at least, or else the new one is answered 503. By HTTP/1 it waits a little before that: its connection
// has memory of its own. A request by HTTP/2 also counts as a connection of its address.
func (g *Gate) Requests(next http.Handler) http.Handler {
	if g.limits.Requests == nil && g.limits.Conns == 0 {
		return next
	}
	g.judges = true
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q *request
		c := carrier(r.Context())
		if c != nil {
			c.pass.handled.Store(true)
		}
		if c != nil && !c.sealed.Load() && r.ProtoMajor == 1 && c.pass.gate == g {
			q = &c.pass.request
		} else {
			q = &request{coded: r.ProtoMajor > 1}
			deadline := http.NewResponseController(w).SetWriteDeadline
			q.cut = func() { deadline(time.Unix(1, 0)) }
			w = watched{w, q}
		}
		if !g.begin(q, r) {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Content-Length", "0") // a body might find no window, and wait
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		turn := q.turn.Load()
		defer g.end(q, turn)
		next.ServeHTTP(w, r)
		if q.turn.Load() == turn {
			q.host.credit.earn(time.Now())
		}
		if c != nil {
			c.pass.serve()
		}
	})
}

// costOf returns the memory that a request takes.
func costOf(r *http.Request) int64 {
	switch {
	case r.Method == http.MethodConnect:
		return perTunnel
	case r.Body == nil || r.Body == http.NoBody:
		return perRequest
	case r.ProtoMajor > 1:
		return perRequest + perWindow
	}
	return perRequest + perUpload
}

// admits counts a request by HTTP/1, and reports whether there is room at this moment.
func (g *Gate) admits(q *request, cost int64) bool {
	q.cost.Store(cost)
	if !g.take(q.host, cost) {
		return false
	}
	q.turn.Add(1)
	return true
}

// begin counts a request, and reports whether there is room.
func (g *Gate) begin(q *request, r *http.Request) bool {
	cost := costOf(r)
	if q.conn != nil && g.admits(q, cost) {
		return true
	}
	q.cost.Store(cost)
	may := false
	if q.conn != nil {
		may = g.waiting.Add(1) <= mostWaiting
		defer g.waiting.Add(-1)
	}
	for pause := time.Second / 100; ; pause *= 2 {
		if g.enforce(q, r.RemoteAddr) {
			return true
		}
		if !may || pause > longestPause {
			break
		}
		sleep(r.Context(), pause)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse(q.host)
	return false
}

const (
	longestPause = time.Second / 3 // the wait of a request for memory is about twice as long
	mostWaiting  = 64              // requests, which hold some memory that is counted nowhere
)

// enforce is begin at this moment, for any request.
func (g *Gate) enforce(q *request, from string) bool {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.host == nil {
		q.host = g.host(prefixOf(from))
	}
	for { // each round but the last closes an idle connection or cuts a request
		own, all := g.full(q.host, now)
		switch {
		case q.coded && (own || all):
			if !g.closeIdle(q.host, own, now) {
				return false
			}
		case g.take(q.host, q.cost.Load()):
			q.turn.Add(1)
			if q.conn == nil {
				g.place(q, 1)
				q.place = g.apart.PushBack(q)
			}
			return true
		case !g.makeRoom(q.host, now):
			return false
		}
	}
}

// place counts the place of a request.
func (g *Gate) place(q *request, n int) {
	if q.coded {
		q.host.used += n
		g.used += n
	}
}

// take takes n bytes for requests of an address, and reports whether there are so many, of which it may have half.
func (g *Gate) take(h *host, n int64) bool {
	account := g.limits.Requests
	if !account.Take(n) {
		return false
	}
	held, most := h.requests.Add(n), half(account)
	if (held == n || held <= most) && (account.Room() >= 2*most/keptOf || held <= h.credit.places(time.Now())*perRequest) {
		return true
	}
	g.give(h, n)
	return false
}

// give gives back what an address took.
func (g *Gate) give(h *host, n int64) {
	h.requests.Add(-n)
	g.limits.Requests.Give(n)
}

// makeRoom cuts the request whose client has taken nothing for longest, of an address that holds as much as
// that of the new one, and reports whether there was any. Its memory counts as free at once: its handler is
// about to end. To look for such requests takes a while: that is done when none is left of those found before.
func (g *Gate) makeRoom(h *host, now time.Time) bool {
	since := now.Add(-stalled).UnixNano()
	for range 2 {
		for i := len(g.stuck) - 1; i >= 0; i-- {
			q := g.stuck[i]
			turn, waiting := q.turn.Load(), q.waiting.Load()
			over := turn%2 == 0 || waiting == 0 || waiting > since
			if !over && q.host.requests.Load() < h.requests.Load() {
				continue
			}
			g.stuck = slices.Delete(g.stuck, i, i+1)
			if !over && g.over(q, turn) {
				if q.host != h {
					q.host.credit.lose()
				}
				g.dropped.Add(1)
				go q.stop(true)
				return true
			}
		}
		if now.Sub(g.looked) < time.Second/100 {
			return false
		}
		g.looked = now
		g.stuck = g.stuckSince(since)
	}
	return false
}

// stuckSince returns the requests whose clients have taken nothing since then, the longest wait last.
func (g *Gate) stuckSince(since int64) (list []*request) {
	for q := range g.requests {
		if t := q.waiting.Load(); t != 0 && t <= since && q.turn.Load()%2 == 1 {
			list = append(list, q)
		}
	}
	slices.SortFunc(list, func(a, b *request) int { return cmp.Compare(b.waiting.Load(), a.waiting.Load()) })
	return list
}

// requests yields all that may be under way. g.mu is held.
func (g *Gate) requests(yield func(*request) bool) {
	for _, c := range g.conns.list {
		if !yield(&c.pass.request) {
			return
		}
	}
	for e := g.apart.Front(); e != nil && yield(e.Value.(*request)); e = e.Next() {
	}
}

// stop ends the answer if that is wanted, and prevents it later.
func (q *request) stop(answer bool) {
	if q.conn != nil {
		q.conn.Conn.Close()
		return
	}
	q.ending.Lock()
	defer q.ending.Unlock()
	if answer && q.cut != nil {
		q.cut()
	}
	q.cut = nil
}

// end counts a request no more.
func (g *Gate) end(q *request, turn uint64) {
	if q.conn != nil && !q.conn.pass.gone.Load() {
		g.over(q, turn)
		return
	}
	if q.conn == nil {
		q.stop(false)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over(q, turn)
	g.tidy(q.host)
}

// over counts a request no more, and reports whether it was counted. g.mu is held, unless it belongs to a
// connection.
func (g *Gate) over(q *request, turn uint64) bool {
	if !q.turn.CompareAndSwap(turn, turn+1) {
		return false
	}
	if q.place != nil {
		g.apart.Remove(q.place)
		q.place = nil
		g.place(q, -1)
	}
	g.give(q.host, q.cost.Load())
	return true
}

// wait notes that the client is waited for, or no more.
func (q *request) wait(on bool) {
	if on {
		q.waiting.Store(time.Now().UnixNano())
	} else {
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
