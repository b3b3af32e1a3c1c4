package cache

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A fetch gets one response for its leader, the request that began it, and its followers,
// those that joined it. It goes on when they leave, so that the response can be stored. The
// package comment draws its states.
type fetch struct {
	key    string  // in Cache.fetches; "" = private, nobody can join
	r      request // the leader's
	stored *found  // a stale copy to be validated; nil = none
	origin bool    // no sibling is asked: one had a representation that the origin replaced
	began  moment  // before anybody was asked

	waiters waiters  // the requests that it has still to answer, in part or whole
	interim interims // 1xx responses, for the leader
	part    bool     // the range that the client wants is asked for
	stale   bool     // a sibling's stale response is taken, since the origin is down
	result  *result  // nil = none yet; set once, with mu held

	replaces *store.Object // replaced by the origin's answer for the leader alone, once that is whole; nil = nothing

	ctx     detached
	sources sources
	outcome result // the memory of result
	entry   entry  // of its entry
	handed  answer // of its answer
	body    body   // and of the first body

	arriving   string // its identity in Cache.arriving, "" = it is not there; guarded by Cache.mu
	advertised bool   // to siblings; likewise

	mu        sync.Mutex
	done      chan struct{} // closed when there is a result; nil while nobody waits for that
	leftAlone bool          // the leader left before there was a result

	invalidated atomic.Bool // the URL was: don't store what comes
}

// A result is what a fetch brought.
type result struct {
	err    error   // nobody answered
	answer *answer // an answer for the leader alone, which closes it

	// Else an answer for all that select it.
	id        string // its identity
	fields    []string
	entry     *entry
	body      *body         // being received
	into      *store.Writer // where to
	length    int64         // of the body; -1 = unknown
	obj       *found        // or in the store: validated, or stale in place of an error
	confirmed bool
	derived   *derived // from another response; nil = it is not
	stale     bool
	storing   bool
	obstacle  rfc9111.Obstacle // what keeps the origin's answer out of the store; 0 = nothing, or a write since

	fwdStatus                       int
	peer                            string   // the sibling that answered
	via                             []string // its Cache-Status
	asked, falseHits, siblingErrors int
}

// run takes a fetch through its states. The loop ends: each round delivers a
// result, or uses up a sibling, or gives up the copy that was to be validated,
// and what the origin answers to a request without conditions is a result.
func (c *Cache) run(f *fetch) {
	src := c.sources(f)
	for f.result == nil {
		a, err := src.next(&f.ctx, c.conditions(f))
		switch {
		case err != nil:
			if !c.staleInstead(f, src, 0) {
				c.forget(f) // the next request asks anew, however soon it comes
				res := newResult(src)
				res.err = err
				f.deliver(res)
			}
		case a.status == http.StatusNotModified && f.stored != nil:
			a.close()
			if f.stored.entry.ConfirmedBy(a.header) {
				f.deliver(c.confirmed(f, src, a))
			} else {
				f.stored = nil // the 304 is of another response: get it whole
			}
		case a.sibling == nil && c.staleInstead(f, src, a.status):
			a.close()
		case c.betterInPart(f, a):
			a.close()
			f.deliver(&result{err: errPart})
		case c.mayStore(f, a):
			c.receive(f, src, a)
		default:
			c.handOver(f, src, a)
		}
	}
	c.forget(f)
	c.deserted(f)
}

// conditions are the fields by which a fetch asks for less than the whole response; nil = for
// the whole.
func (c *Cache) conditions(f *fetch) http.Header {
	switch {
	case f.stored != nil && !f.stored.entry.overdue(c.now()):
		return f.stored.entry.Conditions()
	case f.stored == nil && f.part:
		return ofPart(f.r.Header)
	}
	return nil
}

// staleInstead delivers a stale copy in place of the origin's answer, which is an error, or none
// (status 0): the stored one, or else a sibling's. It reports whether there is one.
func (c *Cache) staleInstead(f *fetch, src *sources, status int) bool {
	if f.stored == nil || !c.standsIn(f, status) {
		return c.takeStale(f, src, status)
	}
	res := newResult(src)
	res.obj, res.entry, res.id = f.stored, f.stored.entry, f.stored.obj.Key()
	_, res.fields = rfc9111.SplitIdentity(res.id)
	res.stale, res.fwdStatus = true, status
	c.forget(f)
	f.deliver(res)
	return true
}

// deliver gives those that wait for the fetch its result.
func (f *fetch) deliver(res *result) {
	f.mu.Lock()
	f.result = res
	if f.done != nil {
		close(f.done)
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

// ready returns what is closed as soon as there is a result.
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

// leave is called by a leader that doesn't wait any longer.
func (f *fetch) leave() {
	f.mu.Lock()
	f.leftAlone = true
	res := f.result
	f.mu.Unlock()
	if res != nil && res.answer != nil {
		res.answer.close()
	}
}

// newResult begins the fetch's result, one that was not delivered aside, with what is known
// of the siblings asked.
func newResult(src *sources) *result {
	res := &src.f.outcome
	*res = result{}
	if in := src.inquiry; in != nil {
		res.asked, res.falseHits, res.siblingErrors = in.Asked, in.FalseHits, in.Errors
	}
	return res
}

// from notes where an answer came from.
func (r *result) from(a *answer) {
	r.peer, r.via = a.peer()
	r.derived = a.derived
}

// confirmed is the result of a validation: the stored response with its header
// brought up to date.
func (c *Cache) confirmed(f *fetch, src *sources, a *answer) *result {
	old := f.stored
	e := c.freshened(old.entry, a)
	res := newResult(src)
	res.entry, res.id, res.confirmed, res.fwdStatus = e, old.obj.Key(), true, a.status
	_, res.fields = rfc9111.SplitIdentity(res.id)
	res.from(a)
	res.obj = &found{obj: old.obj, entry: e}
	c.noteReuse(f, e)
	if c.outdated(f, old.entry.Response) || c.outdated(f, e.Response) || !f.r.mayStore(e.Response) {
		if !e.Storable(nil, false) { // those that wait may have it; it is no longer kept
			f.waiters.ended.Store(old.obj)
		}
		return res
	}
	if obj, err := c.store.Update(old.obj, c.metaOf(res, e, new(bytes.Buffer))); err == nil {
		res.obj.obj, res.storing = obj, true
	}
	return res
}

// mayStore reports whether a whole response may be stored, and can ever be reused.
func (c *Cache) mayStore(f *fetch, a *answer) bool {
	return (a.derived == nil || a.derived.recoded) && !c.outdated(f, a.response()) && f.r.obstacle(a.response()) == 0
}

// handOver gives an answer that can't be shared to the leader alone. Another source can continue
// it if it has a strong validator or, for a part or a response that might be stored at another
// time, if comparing shows that it is the same.
func (c *Cache) handOver(f *fetch, src *sources, a *answer) {
	switch {
	case a.status == http.StatusPartialContent:
		if a.sibling == nil && f.part {
			c.complete(&f.r, a)
		}
	case !f.r.cc.NoStore && a.derived == nil: // else it says nothing of what others ask for
		c.hitForMiss.mark(f.r.url, c.now())
	}
	if f.stored != nil && a.status < 500 && a.sibling == nil && !f.r.cc.NoStore {
		if f.replaces = f.stored.obj; noBody(a.status) {
			c.store.DeleteObject(f.replaces) // before the client can ask again
		}
	}
	res := newResult(src)
	res.fwdStatus = a.status
	res.from(a)
	if a.sibling == nil && a.status != http.StatusPartialContent {
		if res.obstacle = f.r.obstacle(a.response()); res.obstacle != 0 {
			c.NotStored[res.obstacle].Add(1)
		}
	}
	f.handed = *a
	f.handed.body, f.handed.cancel = c.newBody(f, src, a, nil), func(error) {}
	res.answer = &f.handed
	f.deliver(res)
}

// receive takes a response into the store and delivers it: at once if it is the
// origin's, or has a validator by which another source can go on with a sibling's;
// else when the sibling's is whole or too long to wait for. It delivers nothing if
// the sibling fails before that.
func (c *Cache) receive(f *fetch, src *sources, a *answer) {
	fields := rfc9111.VaryFields(a.header)
	id := f.r.identity(fields)
	length := a.length
	if noBody(a.status) {
		length = 0
	}
	w, err := c.store.Create(id, length)
	if err != nil {
		c.handOver(f, src, a)
		return
	}
	b := c.newBody(f, src, a, w)
	f.entry = newEntry(a.response(), a.received, c.via)
	e := &f.entry
	e.given = a.given
	res := newResult(src)
	res.id, res.fields, res.entry, res.body, res.into, res.length = id, fields, e, b, w, length
	res.storing, res.fwdStatus, res.stale = true, a.status, f.stale
	res.from(a)
	c.noteReuse(f, e)

	w.Hold() // until all that wait have it
	f.waiters.body.Store(w)
	c.deserted(f)
	deliver := func() {
		if f.result == nil {
			c.arrives(f)
			f.deliver(res)
		}
	}
	if a.sibling == nil || b.repr.StrongValidator() != "" {
		deliver()
	}
	err = c.pump(f, w, b, deliver)
	w.End(err)
	if err == nil {
		b.end(io.EOF)
		deliver()
		runtime.Gosched() // let the clients, which have it all, be answered before the disk is written to
		c.commit(f, w, res)
	} else {
		b.end(err)
		w.Abort()
	}
	c.arrived(f)
	if f.result == nil {
		w.Release()
		src.inquiry.Broken(a.sibling)
		return
	}
	if err != nil && !errors.Is(err, store.ErrNoFollower) && f.waiters.n.Load() > 0 && w.Len() > 0 {
		c.BodiesCut.Add(1)
		c.log.Info("no source could finish a body", "url", f.r.url, "error", err)
	}
	c.forget(f)
}

// noteReuse keeps requests from waiting for a response that must be validated for
// each of them.
func (c *Cache) noteReuse(f *fetch, e *entry) {
	if now := c.now(); e.Control.NoCache || e.freshFor(now) <= 0 {
		c.hitForMiss.mark(f.r.url, now)
	}
}

const (
	unattendedRest = 16 << 20 // bytes that may be missing of a body that is received although nobody reads it
	deliverSize    = 64 << 10 // bytes of a sibling's body that are awaited before any is passed on
)

// pump copies a body into the store.
func (c *Cache) pump(f *fetch, w *store.Writer, b *body, deliver func()) error {
	buf := c.buffer()
	defer c.spare(buf)
	var total int64
	for {
		n, err := b.Read(buf)
		total += int64(n)
		if werr := w.Write(c.stopped, buf[:n]); werr != nil {
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

// commit puts a received body under its entry, unless its URL was invalidated
// meanwhile.
func (c *Cache) commit(f *fetch, w *store.Writer, res *result) {
	if c.outdated(f, res.entry.Response) {
		w.Abort()
		return
	}
	c.hints.Learn(f.r.url, res.fields)
	e := res.entry
	if given := res.body.given(); e.given == nil && given != nil { // a sibling went on where the origin ended
		mixed := newEntry(e.Response, e.received, c.via)
		mixed.given = given
		e = &mixed
	}
	text := c.texts.Get().(*bytes.Buffer)
	defer c.texts.Put(text)
	m := c.metaOf(res, e, text)
	m.Copied = res.peer != ""
	obj, err := w.Commit(m)
	if err != nil {
		c.log.Warn("cannot store a response", "url", f.r.url, "error", err)
		return
	}
	if c.outdated(f, res.entry.Response) { // by now
		c.store.DeleteObject(obj)
		return
	}
	c.Stored.Add(1)
	if res.derived == nil { // else what it was made of is compared
		c.compareSome(f, obj, e)
	}
	if f.stored != nil && f.stored.obj.Key() != res.id {
		c.store.DeleteObject(f.stored.obj) // its successor varies by other fields
	}
}

// selects reports whether the result answers the follower's request r: the same
// variant, and fresh enough for what r asks.
func (c *Cache) selects(res *result, r *request) bool {
	if res.entry == nil || r.identity(res.fields) != res.id {
		return false
	}
	now := c.now()
	v, _ := res.entry.Reuse(&r.cc, res.entry.age(now))
	return v == rfc9111.ServeFresh || res.stale && res.entry.StaleOnError(&r.cc, 0, res.entry.age(now))
}
