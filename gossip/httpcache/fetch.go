package httpcache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A fetch gets one response for its leader, the request that began it, and its followers,
// the requests that joined it. It continues when they leave, so that the response can be stored. The
// package comment draws its states.
type fetch struct {
	key    string  // in Cache.fetches; "" = private, it can't be joined
	r      request // the leader's
	stored *found  // a stale copy to be validated; nil = none
	origin bool    // no sibling is asked: one had a representation that the origin has replaced
	began  moment  // before the first request to a source
	state  fetchState

	waiters waiters
	interim interims // 1xx responses, for the leader
	part    bool     // the range that the client wants is requested
	first   *answer  // the origin's answer to a request for the whole, cut to its first slice; nil = none
	stale   bool     // a sibling's stale response is accepted, since the origin is down
	result  *result  // nil = none yet; set once, with mu held

	replaces bodies.Object // removed when an answer handed to the leader alone is complete; nil = none

	// The memory of the first of each.
	ctx      detached
	unwanted context.CancelFunc // ends ctx when no request waits for a result; nil = it lasts
	sources  sources
	outcome  result
	entry    entry  // of the result
	handed   answer // of the result
	body     body

	arriving   string // identity in Cache.arriving, "" = not there; guarded by Cache.mu
	advertised bool   // the arriving body is; guarded by Cache.mu

	mu        sync.Mutex
	done      chan struct{} // closed when there is a result; nil until somebody waits for that
	leftAlone bool          // the leader left before there was a result

	invalidated atomic.Bool // the URL or a tag was: the response must not be stored
}

// A result is the result of a fetch.
type result struct {
	err    error   // no source answered
	answer *answer // for the leader alone, which closes it

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

// run takes a fetch through its states. The loop ends: each round delivers a
// result, uses up a sibling, or gives up the copy that was to be validated;
// and the origin's answer to a request without conditions is a result.
func (c *Cache) run(f *fetch) {
	if f.unwanted != nil {
		defer f.unwanted()
	}
	src := c.sources(f)
	for slice := f.r.slice; f.result == nil; {
		f.r.slice = slice // an unusable answer may have been a whole one
		a, err := c.next(f, src)
		switch {
		case err != nil:
			if IsClients(err) || !c.staleInstead(f, src, 0) {
				c.fail(f, newResult(src), err)
			}
		case a.status == http.StatusNotModified && f.stored != nil:
			a.close()
			if f.stored.entry.ConfirmedBy(a.header) {
				c.deliver(f, c.confirmed(f, src, a), fetchConfirmed)
			} else {
				f.stored = nil // the 304 confirms another response: request the whole
			}
		case a.sibling == nil && c.staleInstead(f, src, a.status):
			a.close()
		case c.tooLarge(f, a):
			if f.stored != nil {
				c.store.DeleteObject(f.stored.obj)
			}
			c.large.add(f.r.url, c.now(), largeTime)
			c.fail(f, &result{answer: firstSlice(a)}, errSliced)
		case c.misfit(f, a):
			a.close()
			if a.sibling == nil {
				c.fail(f, newResult(src), errUnsliced)
			}
		case c.betterInPart(f, a):
			a.close()
			c.deliver(f, &result{err: errPart}, fetchFailed)
		case c.mayStore(f, a):
			c.receive(f, src, a)
		default:
			c.handOver(f, src, a)
		}
	}
	c.forget(f)
	c.deserted(f)
}

// next returns the next answer: that with which another fetch has begun, if no sibling is to be asked, or one
// to a request.
func (c *Cache) next(f *fetch, src *sources) (*answer, error) {
	if a := f.first; a != nil {
		f.first = nil
		if src.siblings == nil || src.siblings.Left() == 0 {
			return a, nil
		}
		a.close()
	}
	return src.next(&f.ctx, c.conditions(f))
}

// fail ends a fetch without an answer.
func (c *Cache) fail(f *fetch, res *result, err error) {
	c.forget(f) // so that the next request begins another fetch
	res.err = err
	c.deliver(f, res, fetchFailed)
}

// conditions returns the fields of a request for less than the whole response; nil = for the whole.
func (c *Cache) conditions(f *fetch) (h http.Header) {
	switch {
	case f.stored != nil && !f.stored.entry.overdue(c.now()):
		h = f.stored.entry.Conditions()
	case f.stored == nil && f.part:
		return ofPart(f.r.Header)
	}
	if f.r.slice > 0 {
		h = ofSlice(f.r.slice, h)
	}
	return h
}

// staleInstead delivers a stale copy in place of the origin's answer, if that is missing (status 0)
// or an error: the stored copy or, without one, a sibling's. It reports whether there is one, or whether
// the fetch has ended since a sibling has slices.
func (c *Cache) staleInstead(f *fetch, src *sources, status int) bool {
	if f.stored == nil && (status == 0 || status >= http.StatusInternalServerError) && c.sliceElsewhere(f) {
		c.fail(f, newResult(src), errSliced)
		return true
	}
	if f.stored == nil || !c.standsIn(f, status) {
		return c.takeStale(f, src, status)
	}
	res := newResult(src)
	res.obj, res.entry, res.id = f.stored, f.stored.entry, f.stored.obj.Key()
	_, res.fields = rfc9111.SplitIdentity(res.id)
	res.stale, res.fwdStatus = true, status
	c.forget(f)
	c.deliver(f, res, fetchStale)
	return true
}

// deliver sets the result and wakes the requests that wait for it.
func (c *Cache) deliver(f *fetch, res *result, to fetchState) {
	c.become(f, to)
	f.mu.Lock()
	f.result = res
	if f.done != nil {
		close(f.done)
	}
	if f.unwanted != nil && res.err != nil {
		f.unwanted()
	}
	orphan := f.leftAlone && res.answer != nil
	f.mu.Unlock()
	if orphan {
		res.answer.close()
	}
}

// delivered reports whether there is a result.
func (f *fetch) delivered() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.result != nil
}

// ready returns a channel that is closed when there is a result.
func (f *fetch) ready() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.result != nil {
			close(f.done)
		}
	}
	return f.done
}

// leave is called when the leader does not wait any longer.
func (f *fetch) leave() {
	f.mu.Lock()
	f.leftAlone = true
	res := f.result
	f.mu.Unlock()
	if res != nil && res.answer != nil {
		res.answer.close()
	}
}

// newResult makes a result in the fetch's memory, where it replaces an earlier one that was not
// delivered. It has the counts of the siblings asked.
func newResult(src *sources) *result {
	res := &src.f.outcome
	*res = result{}
	if in := src.siblings; in != nil {
		res.asked, res.falseHits, res.siblingErrors = in.Asked, in.FalseHits, in.Errors
	}
	return res
}

// from notes the source of an answer.
func (r *result) from(a *answer) {
	r.peer, r.via = a.peer()
	r.derived = a.derived
}

// confirmed returns the result of a successful validation: the stored response with an updated
// header. Like an answer, a 304 may be for the leader alone. Then the stored response stays as it was
// if others may still validate it, and is otherwise removed once the leader has its body.
func (c *Cache) confirmed(f *fetch, src *sources, a *answer) *result {
	old := f.stored
	e := c.freshened(old.entry, a)
	res := newResult(src)
	res.entry, res.id, res.confirmed, res.fwdStatus = e, old.obj.Key(), true, a.status
	_, res.fields = rfc9111.SplitIdentity(res.id)
	res.from(a)
	res.obj = &found{obj: old.obj, entry: e}
	c.noteReuse(f, e)
	if why := f.r.unshared(old.entry, e); why != 0 {
		if !f.r.cc.NoStore {
			c.hitForMiss.add(f.r.url, c.now(), hitForMissTime)
		}
		if why == rfc9111.VaryObstacle || why != rfc9111.CookieObstacle && !e.Storable(nil, false) {
			f.waiters.ended.Store(old)
		}
		res.obstacle, res.alone = why, true
		return res
	}
	if c.outdated(f, old.entry.Response) || c.outdated(f, e.Response) {
		return res
	}
	if obj, err := c.store.Update(old.obj, c.metaOf(res, e, new(bytes.Buffer))); err == nil {
		res.obj.obj, res.storing = obj, true
	}
	return res
}

// mayStore reports whether a whole response may be stored, and can ever be reused. What an origin
// answers to a range is nothing to other clients, unless it is the whole, or the slice that was requested.
func (c *Cache) mayStore(f *fetch, a *answer) bool {
	return (f.r.slice == 0 || a.status == http.StatusPartialContent || planted.Fault == "error-to-slice-stored") && (!f.part || a.status == http.StatusOK || planted.Fault == "part-stored" || planted.Fault == "error-to-range-stored") && (a.derived == nil || a.derived.recoded) && !c.outdated(f, a.response()) && f.r.obstacle(a.response()) == 0
}

// handOver delivers an answer that can't be shared to the leader alone. Another source can continue
// it if there is a strong validator. Without one, a part, or a response that might be stored at
// another time, can be continued if comparing shows that the bytes are the same.
func (c *Cache) handOver(f *fetch, src *sources, a *answer) {
	switch {
	case f.r.slice > 0 && a.status == http.StatusPartialContent && !f.r.cc.NoStore: // the client may want less, or more; finish wants it
		a.close()
		c.fail(f, newResult(src), errUnsliced)
		return
	case a.status == http.StatusPartialContent:
	case (f.part || f.r.slice > 0) && a.status != http.StatusOK: // it says nothing of the whole
	case !f.r.cc.NoStore && a.derived == nil: // otherwise other requests may still share theirs
		c.hitForMiss.add(f.r.url, c.now(), hitForMissTime)
	}
	if f.stored != nil && a.status < 500 && a.sibling == nil && !f.r.cc.NoStore {
		if f.replaces = f.stored.obj; noBody(a.status) {
			c.store.DeleteObject(f.replaces) // before the client can send another request
		}
	}
	res := newResult(src)
	res.fwdStatus, res.stale = a.status, f.stale
	res.from(a)
	if a.sibling == nil && a.status != http.StatusPartialContent {
		if res.obstacle = f.r.obstacle(a.response()); res.obstacle != 0 {
			c.NotStored[res.obstacle].Add(1)
		}
	}
	f.handed = *a
	f.handed.body, f.handed.cancel = c.newBody(f, a, nil), func(error) {}
	res.answer = &f.handed
	c.deliver(f, res, fetchHandedOver)
}

// receive stores a response and delivers it. It delivers the origin's response at once, and a
// sibling's if it has a strong validator, so that another source can continue it. Any other
// response of a sibling is delivered when it is complete or long enough; if the sibling fails
// before that, nothing is delivered.
func (c *Cache) receive(f *fetch, src *sources, a *answer) {
	fields := rfc9111.VaryFields(a.header)
	id := f.r.identity(fields)
	length := a.length
	if noBody(a.status) {
		length = 0
	}
	w, err := c.store.Create(id, length)
	if err != nil {
		if f.r.slice > 0 {
			c.unsliced.add(f.r.url, c.now(), unslicedTime)
		}
		c.handOver(f, src, a)
		return
	}
	c.become(f, fetchReceives)
	b := c.newBody(f, a, w)
	f.entry = newEntry(a.response(), a.received, c.via)
	e := &f.entry
	e.given = a.given
	if f.r.slice > 0 {
		e.of.first, _, e.of.size = a.span()
	}
	res := newResult(src)
	res.id, res.fields, res.entry, res.body, res.into, res.length = id, fields, e, b, w, length
	res.storing, res.fwdStatus, res.stale = true, a.status, f.stale
	res.from(a)
	c.noteReuse(f, e)

	w.Hold() // until all waiting requests have the body
	f.waiters.body.Store(w)
	c.deserted(f)
	deliver := func() {
		if f.result == nil {
			c.arrives(f)
			c.deliver(f, res, fetchDelivers)
		}
	}
	if a.sibling == nil || b.repr.StrongValidator() != "" {
		deliver()
	}
	err = c.pump(f, w, b, deliver)
	if err == nil {
		b.end(io.EOF)
		deliver()
		runtime.Gosched() // so that the clients get the rest before the disk is written to
		c.commit(f, w, res)
	} else {
		b.end(err) // first, so that a client that learns of it and asks again gets another fetch
		w.End(err)
		w.Abort()
	}
	c.arrived(f)
	if f.result == nil {
		w.Release()
		src.siblings.Broken(a.sibling)
		c.become(f, fetchAsks)
		return
	}
	if err != nil {
		c.become(f, fetchCut)
	}
	if err != nil && !errors.Is(err, bodies.ErrNoFollower) && f.waiters.n.Load() > 0 && w.Len() > 0 {
		c.BodiesCut.Add(1)
		c.log.Info("no source could finish a body", "url", f.r.url, "error", err)
	}
	c.forget(f)
}

// noteReuse keeps requests from waiting for each other if the response must be validated for
// each of them.
func (c *Cache) noteReuse(f *fetch, e *entry) {
	if now := c.now(); e.Control.NoCache || e.freshFor(now) <= 0 {
		c.hitForMiss.add(f.r.url, now, hitForMissTime)
	}
}

const (
	unattendedRest = 16 << 20 // a body that no request waits for is only received if no more bytes than this are missing
	deliverSize    = 64 << 10 // bytes of a sibling's body that must arrive before any is delivered
)

// pump copies a body into the store.
func (c *Cache) pump(f *fetch, w *bodies.Stream, b *body, deliver func()) error {
	buf := c.buffer()
	defer c.spare(buf)
	var total int64
	for {
		into := w.Free()
		if len(into) == 0 {
			into = buf
		}
		n, err := b.Read(into)
		total += int64(n)
		if werr := w.Write(c.stopped, into[:n]); werr != nil {
			return werr
		}
		switch {
		case err == io.EOF:
			return w.End(nil)
		case err != nil:
			return err
		case total >= deliverSize:
			deliver()
		}
		if total > unattendedRest && (b.repr.length < 0 || b.repr.length-total > unattendedRest) && c.abandon(f) {
			return errUnattended
		}
	}
}

// commit stores a received body with its entry, unless its URL was invalidated meanwhile.
func (c *Cache) commit(f *fetch, w *bodies.Stream, res *result) {
	c.hints.Learn(f.r.url, res.fields)
	e := res.entry
	if given := res.body.given(); e.given == nil && given != nil { // a sibling continued the origin's body
		mixed := newEntry(e.Response, e.received, c.via)
		mixed.of, mixed.given = e.of, given
		e = &mixed
	}
	text := c.texts.Get().(*bytes.Buffer)
	defer c.texts.Put(text)
	m := c.metaOf(res, e, text)
	m.Copied = res.peer != ""
	m.Wanted = func() bool { return planted.Fault == "late-commit" || !c.outdated(f, res.entry.Response) }
	obj, err := w.Commit(m)
	if err != nil {
		c.become(f, fetchUnstored)
		if !errors.Is(err, bodies.ErrUnwanted) {
			c.log.Warn("cannot store a response", "url", f.r.url, "error", err)
		}
		return
	}
	c.become(f, fetchStored)
	c.Stored.Add(1)
	if res.derived == nil { // otherwise the plain response is compared
		c.compareSome(f, obj, e)
	}
	if f.stored != nil && f.stored.obj.Key() != res.id {
		c.store.DeleteObject(f.stored.obj) // its successor varies by other fields
	}
}

// selects reports whether the result answers the follower's request r: it is the right
// variant, and fresh enough for r.
func (c *Cache) selects(res *result, r *request) bool {
	if res.entry == nil || planted.Fault != "any-variant" && r.identity(res.fields) != res.id && (r.slice == 0 || r.whole().identity(res.fields) != res.id) {
		return false
	}
	now := c.now()
	v, _ := res.entry.Reuse(&r.cc, res.entry.age(now))
	return v == rfc9111.ServeFresh || res.stale && res.entry.StaleOnError(&r.cc, 0, res.entry.age(now))
}
