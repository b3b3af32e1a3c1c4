package cache

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

// A flight is one fetch and those who wait for it. The request that starts it is
// its leader; requests that could be answered by the same response join it.
// Fetching goes on when they leave, so that what was begun can be stored.
type flight struct {
	key    string   // in Cache.flights; "" = private, nobody can join
	r      *request // the leader's
	stored *found   // a stale copy to be validated; nil = none
	reason string   // for Cache-Status: why the request went forward

	waiters waiters       // the requests that it has still to answer, in part or whole
	ready   chan struct{} // closed when out is set
	interim chan interim  // 1xx responses, for the leader
	out     *landing

	mu        sync.Mutex
	leftAlone bool // the leader left before out was set

	poisoned atomic.Bool // the URL was invalidated: don't store what comes
}

// A landing is what a flight brought.
type landing struct {
	err    error   // nobody answered
	answer *answer // an answer for the leader alone; it closes the body

	// Else an answer for all who select it.
	id        string // its identity
	fields    []string
	entry     *entry
	body      *store.Writer // being received
	length    int64         // of the body; -1 = unknown
	obj       *found        // or in the store: validated, or stale in place of an error
	confirmed bool
	stale     bool
	storing   bool

	fwdStatus                       int
	peer                            string   // the sibling that answered
	via                             []string // its Cache-Status
	asked, falseHits, siblingErrors int
}

// newFlight registers a flight under key, unless there is one already, which it
// returns with joined = true and registers the caller with as a waiter.
func (c *Cache) newFlight(r *request, key string, stored *found, reason string) (f *flight, joined bool) {
	f = &flight{key: key, r: r, stored: stored, reason: reason, ready: make(chan struct{}),
		interim: make(chan interim, maxInterim)}
	f.waiters.join()
	if key == "" {
		return f, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.flights[key]; other != nil {
		other.waiters.join()
		return other, true
	}
	c.flights[key] = f
	return f, false
}

// waiters counts the requests that a flight answers.
type waiters struct {
	sync.WaitGroup
	n    atomic.Int64
	none atomic.Pointer[func()] // called when there are none
}

func (w *waiters) join() {
	w.n.Add(1)
	w.Add(1)
}

func (w *waiters) leave() {
	if w.n.Add(-1) == 0 {
		if none := w.none.Load(); none != nil {
			(*none)()
		}
	}
	w.Done()
}

// untilNone has release called, and returns it, as soon as there are no waiters.
func (w *waiters) untilNone(release func()) func() {
	w.none.Store(&release)
	if w.n.Load() == 0 {
		release()
	}
	return release
}

// abandon lets nobody join the flight any more if nobody waits for it now, and
// reports whether that is so. Who waits need not have come to read the body yet.
func (c *Cache) abandon(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters.n.Load() > 0 {
		return false
	}
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
	return true
}

// forget lets nobody join the flight any more.
func (c *Cache) forget(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// poison keeps the flights for a URL from storing what they bring, and new
// requests from joining them, since it may be older than what removed the URL's
// responses; and it keeps siblings from bringing older copies back.
func (c *Cache) poison(url string) {
	c.graves.set(url, timeNow())
	c.poisonFlights(func(other string) bool { return other == url })
}

// poisonPrefix does the same for all URLs that begin with prefix.
func (c *Cache) poisonPrefix(prefix string) {
	c.graves.setPrefix(prefix, timeNow())
	c.poisonFlights(func(url string) bool { return strings.HasPrefix(url, prefix) })
}

func (c *Cache) poisonFlights(dead func(url string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, f := range c.flights {
		if dead(f.r.url) {
			f.poisoned.Store(true)
			delete(c.flights, key)
		}
	}
}

// start runs the flight in the background of its leader's request.
func (c *Cache) start(f *flight) {
	c.background.Add(1)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(f.r.Context()))
	unhook := context.AfterFunc(c.stopped, func() { cancel(errStopped) })
	go func() {
		defer c.background.Done()
		defer unhook()
		c.run(ctx, cancel, f)
	}()
}

// land publishes what the flight brought.
func (f *flight) land(out *landing) {
	f.mu.Lock()
	f.out = out
	close(f.ready)
	orphan := f.leftAlone && out.answer != nil
	f.mu.Unlock()
	if orphan {
		out.answer.body.Close()
	}
}

// leave is called by a leader that doesn't wait any longer.
func (f *flight) leave() {
	f.mu.Lock()
	f.leftAlone = true
	out := f.out
	f.mu.Unlock()
	if out != nil && out.answer != nil {
		out.answer.body.Close()
	}
}

// selects reports whether the landing answers the follower's request r: the same
// variant, and fresh enough for what r asks.
func (l *landing) selects(r *request) bool {
	if l.entry == nil || variantIdentity(r.url, l.fields, r.Header) != l.id {
		return false
	}
	v, _ := l.entry.judge(&r.cc, timeNow())
	return v == useFresh || l.stale && l.entry.onError(&r.cc, 0, timeNow())
}

// background validates a stale copy that was served already (RFC 5861).
func (c *Cache) validate(r *request, stored *found) {
	clone := r.Clone(context.WithoutCancel(r.Context()))
	clone.Header = r.Header.Clone()
	quiet := *r
	quiet.Request = clone
	quiet.cc = noDirectives()
	f, joined := c.newFlight(&quiet, stored.obj.Key(), stored, "stale")
	f.waiters.leave()
	if joined {
		return
	}
	f.leave()
	c.Background.Add(1)
	c.start(f)
}

// conditional are the request fields that a fetch for the cache must not pass
// on: it wants the whole response.
var conditional = []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"}

func withoutConditions(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range conditional {
		delete(h, name)
	}
	return h
}
