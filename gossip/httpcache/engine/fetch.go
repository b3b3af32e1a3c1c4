package engine

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A fetch gets one response for its leader, the request that began it, and its followers,
// the requests that joined it. It continues when they leave, so that the response can be stored. The
// package comment draws its states.
type fetch struct {
	key    string  // in Cache.fetches; "" = private, it can't be joined
	r      request // the leader's
	stored *found  // a stale copy to be validated; nil = none
	began  moment  // before the first request to a source; a tick
	state  fetchState

	ctx     detached
	waiters waiters
	interim interims // 1xx responses, for the leader
	delivery

	src  *sources             // its own, or those of the fetch beside which it was begun
	over atomic.Pointer[body] // beside which it was begun, and which it has not overtaken; nil = none

	sources sources // the memory of src
	outcome result  // the memory of the result

	advertised bool // the arriving body is; guarded by Cache.mu
	here       bool // its leader's goroutine runs it, and has it to itself; see Cache.leadHere
}

// A delivery is the result of a fetch on its way to the requests that wait for it.
type delivery struct {
	mu     sync.Mutex
	result *result       // nil = none yet; set once
	done   chan struct{} // closed when there is one; nil until somebody waits for that
	left   bool          // the leader did, before there was one
}

// A result is the result of a fetch.
type result struct {
	err    error   // no source answered
	answer *answer // for the leader alone, which closes it
	open   *opened // the origin's answer with the whole, of which this is the first slice, for the leader, which closes it

	// If neither is set, an answer for all requests that select it.
	id        string   // its identity
	fields    []string // by which it varies
	entry     *entry
	body      *body          // being received
	into      *bodies.Stream // receives body
	length    int64          // of the body; -1 = unknown
	obj       *found         // in the store, in place of body: validated, or stale in place of an error
	confirmed bool
	alone     bool     // the header is for the leader alone
	derived   *derived // from another response; nil = it is not
	stale     bool
	storing   bool
	obstacle  rfc9111.Obstacle // why the origin's answer or 304 is not stored; 0 = it is, or a write prevents it

	fwdStatus                       int
	peer                            string   // the sibling that answered
	via                             []string // its Cache-Status
	asked, falseHits, siblingErrors int
}

// run takes a fetch through its states: each kind of answer has its step (steps.go, receive.go). The loop ends: each
// round delivers a result, uses up a sibling, or gives up the copy that was to be validated; and the origin's answer
// to a request without conditions is a result.
func (c *Cache) run(f *fetch) {
	defer f.ctx.cancel()
	if f.src == nil {
		f.src = c.sources(f)
	}
	for slice := f.r.slice; f.result == nil; {
		f.r.slice = slice // an unusable answer may have been a whole one
		if a, err := f.src.next(&f.ctx, c.conditions(f)); !c.take(f, a, err) {
			return
		}
	}
	if !f.here {
		c.forget(f)
		c.deserted(f)
	}
}

// take takes an answer, or why there is none. It reports whether this goroutine still runs the fetch.
func (c *Cache) take(f *fetch, a *answer, err error) bool {
	beside := f.over.Load()
	switch {
	case err != nil:
		c.noAnswer(f, err)
	case a.status == http.StatusNotModified && f.stored != nil:
		c.confirm(f, a)
	case beside == nil && a.sibling == nil && c.staleInstead(f, a.status):
		a.close()
	case beside == nil && c.tooLarge(f, a):
		return c.take(f, c.beginSlices(f, a), nil)
	case c.otherThanSlice(f, a):
		c.skip(f, a)
	case beside != nil && !c.better(f, beside, a):
	case c.betterInPart(f, a):
		a.close()
		c.fail(f, newResult(f), context.Canceled) // its request, and those that wait for it, look again
	case c.mayStore(f, a):
		if f.here && (a.bodyLength() < 0 || a.bodyLength() > mostHere) {
			c.runOn(f, a)
			return false
		}
		c.receive(f, a)
	default:
		c.handOver(f, a)
	}
	return true
}

// fail ends a fetch without an answer.
func (c *Cache) fail(f *fetch, res *result, err error) {
	c.forget(f) // so that the next request begins another fetch
	res.err = err
	c.deliver(f, res, fetchFailed)
}

// conditions returns the fields of a request for less than the whole response; nil = for the whole.
func (c *Cache) conditions(f *fetch) (h http.Header) {
	if f.stored != nil && !f.stored.entry.overdue(c.now()) {
		h = f.stored.entry.Conditions()
	}
	if f.r.slice > 0 {
		h = ofSlice(f.r.slice, h)
	}
	return h
}

// deliver sets the result and wakes the requests that wait for it.
func (c *Cache) deliver(f *fetch, res *result, to fetchState) {
	c.become(f, to)
	f.set(res)
	if res.err != nil {
		f.ctx.cancel()
	}
}

func (d *delivery) set(res *result) {
	d.mu.Lock()
	d.result = res
	if d.done != nil {
		close(d.done)
	}
	left := d.left
	d.mu.Unlock()
	if left {
		res.close()
	}
}

// close closes what only the leader gets.
func (r *result) close() {
	if r.answer != nil {
		r.answer.close()
	}
	r.open.release()
}

// delivered reports whether there is a result.
func (d *delivery) delivered() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.result != nil
}

// ready returns a channel that is closed when there is a result.
func (d *delivery) ready() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		if d.result != nil {
			close(d.done)
		}
	}
	return d.done
}

// leave is called when the leader does not wait any longer.
func (d *delivery) leave() {
	d.mu.Lock()
	d.left = true
	res := d.result
	d.mu.Unlock()
	if res != nil {
		res.close()
	}
}

// newResult makes a result in the fetch's memory, where it replaces an earlier one that was not
// delivered. It has the counts of the siblings asked, but for a fetch beside a body: nobody leads that, and the other may ask again.
func newResult(f *fetch) *result {
	res := &f.outcome
	*res = result{open: res.open}
	if in := f.src.siblings; in != nil && f.src.f == f {
		res.asked, res.falseHits, res.siblingErrors = in.Asked, in.FalseHits, in.Errors
	}
	return res
}

// from notes the source of an answer.
func (r *result) from(a *answer) {
	r.peer, r.via = a.peer()
	r.derived = a.derived
}

// selects reports whether the result answers the follower's request r: it is the right
// variant, and fresh enough for r.
func (c *Cache) selects(res *result, r *request) bool {
	if res.entry == nil || r.identity(res.fields) != res.id && (r.slice == 0 || r.variant(res.fields) != res.id) {
		return false
	}
	now := c.now()
	v, _ := res.entry.Reuse(&r.cc, res.entry.age(now))
	return v == rfc9111.ServeFresh || res.stale && res.entry.StaleOnError(&r.cc, 0, res.entry.age(now))
}
