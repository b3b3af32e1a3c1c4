package cache

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// timeNow is the clock; tests run it under synctest.
func timeNow() time.Time { return time.Now() }

// An answer is a response from the origin or a sibling. Its header has no
// connection fields.
type answer struct {
	status              int
	header              http.Header
	trailer             http.Header // filled when the body was read
	body                io.ReadCloser
	length              int64 // of the body; -1 = unknown
	requested, received time.Time

	sibling *sibling.Answer // nil = from the origin
	via     []string        // the sibling's Cache-Status, with its own member
}

// run is a flight's way: ask, decide, publish, receive, store.
func (c *Cache) run(ctx context.Context, cancel context.CancelCauseFunc, f *flight) {
	src := c.sources(f)
	for {
		done, handedOver := c.attempt(ctx, cancel, f, src)
		if !done {
			continue
		}
		c.forget(f)
		if !handedOver {
			cancel(nil)
		}
		return
	}
}

// attempt fetches from the next source. It isn't done when a sibling's body
// broke off before anybody saw a byte of it, or the answer fits no copy of ours.
// With handedOver, the leader reads the answer's body and ctx lives on with it.
func (c *Cache) attempt(ctx context.Context, cancel context.CancelCauseFunc, f *flight, src *sources) (done, handedOver bool) {
	var stored *entry
	if f.stored != nil {
		stored = f.stored.entry
	}
	a, err := src.next(ctx, stored.conditions())
	switch {
	case err != nil:
		f.land(c.failed(f, src, err))
		return true, false
	case a.status == http.StatusNotModified && stored != nil:
		a.body.Close()
		if !stored.confirmedBy(a) {
			f.stored = nil // it is another response that the 304 speaks of: get it whole
			return false, false
		}
		f.land(c.freshened(f, src, a))
		return true, false
	case f.stored != nil && a.sibling == nil && staleStatus(a.status) && stored.onError(&f.r.cc, a.status, timeNow()):
		a.body.Close()
		f.land(c.standIn(f, src, a.status))
		return true, false
	case !storable(f.r.Header, &f.r.cc, a.status, a.header) || f.poisoned.Load() || !newEntry(a.status, a.header, headerAge(a.header), a.requested, a.received, "").useful():
		c.dropReplaced(f, a)
		return true, c.handOver(cancel, f, src, a)
	}
	return c.receive(ctx, cancel, f, src, a)
}

// landing starts one with what is known of the siblings asked.
func (f *flight) landing(src *sources) *landing {
	l := &landing{}
	if src.inquiry != nil {
		l.asked, l.falseHits, l.siblingErrors = src.inquiry.Asked, src.inquiry.FalseHits, src.inquiry.Errors
	}
	return l
}

// failed is the landing of a flight that nobody answered: the stale copy, if it
// may stand in, else the error.
func (c *Cache) failed(f *flight, src *sources, err error) *landing {
	if f.stored != nil && f.stored.entry.onError(&f.r.cc, 0, timeNow()) {
		return c.standIn(f, src, 0)
	}
	l := f.landing(src)
	l.err = err
	return l
}

func (c *Cache) standIn(f *flight, src *sources, status int) *landing {
	l := f.landing(src)
	l.obj, l.entry, l.id = f.stored, f.stored.entry, f.stored.obj.Key()
	_, l.fields = splitIdentity(l.id)
	l.stale, l.fwdStatus = true, status
	return l
}

// freshened is the landing of a validation: the stored response with its header
// brought up to date (RFC 9111 section 4.3.4).
func (c *Cache) freshened(f *flight, src *sources, res *answer) *landing {
	old := f.stored
	e := old.entry.freshened(res, c.cfg.Name)
	l := f.landing(src)
	l.entry, l.id, l.confirmed, l.fwdStatus = e, old.obj.Key(), true, res.status
	_, l.fields = splitIdentity(l.id)
	l.peer, l.via = res.peer()
	l.obj = &found{obj: old.obj, entry: e}
	c.noteReuse(f, e)
	if f.poisoned.Load() || !storable(f.r.Header, &f.r.cc, e.status, e.header) {
		return l // good for those who wait, no longer to be kept
	}
	obj, err := c.store.Update(old.obj, c.meta(e))
	if err == nil {
		l.obj.obj, l.storing = obj, true
	}
	return l
}

// handOver gives an answer that can't be shared to the leader alone.
func (c *Cache) handOver(cancel context.CancelCauseFunc, f *flight, src *sources, res *answer) bool {
	c.solo.mark(f.r.url, timeNow())
	l := f.landing(src)
	l.answer, l.fwdStatus = res, res.status
	l.peer, l.via = res.peer()
	res.body = &closing{ReadCloser: res.body, after: func() { cancel(nil) }}
	f.land(l)
	return true
}

// dropReplaced removes a stored response that the origin no longer stands by but
// has replaced by one that can't be stored.
func (c *Cache) dropReplaced(f *flight, res *answer) {
	if f.stored != nil && res.status < 500 && res.sibling == nil && !f.r.cc.noStore {
		c.store.DeleteObject(f.stored.obj)
	}
}

// receive takes a response into the store and publishes it: at once if it comes
// from the origin; if from a sibling, when it is whole or too long to wait for,
// so that another source can step in for as long as nobody saw a byte.
func (c *Cache) receive(ctx context.Context, cancel context.CancelCauseFunc, f *flight, src *sources, res *answer) (done, handedOver bool) {
	fields := varyFields(res.header)
	id := variantIdentity(f.r.url, fields, f.r.Header)
	length := res.length
	if noBody(res.status) {
		length = 0
	}
	w, err := c.store.Create(id, length)
	if err != nil {
		return true, c.handOver(cancel, f, src, res)
	}
	e := entryOf(res, c.cfg.Name)
	l := f.landing(src)
	l.id, l.fields, l.entry, l.body, l.length = id, fields, e, w, length
	l.storing, l.fwdStatus = true, res.status
	l.peer, l.via = res.peer()
	c.noteReuse(f, e)

	release := f.waiters.untilNone(w.Hold()) // keeps the body at hand until all who wait have it
	landed, over := false, func() {}
	publish := func() {
		if !landed {
			landed = true
			over = c.arrives(f, l)
			f.land(l)
		}
	}
	defer func() {
		over()
		if landed {
			c.forget(f)
			f.waiters.Wait()
		}
		release()
	}()
	if res.sibling == nil {
		publish()
	}
	if err := c.pump(ctx, f, w, res, publish); err != nil {
		w.End(err)
		w.Abort()
		if !landed {
			src.inquiry.Broken(res.sibling)
			return false, false
		}
		c.log.Info("a body broke off", "url", f.r.url, "error", err)
		return true, false
	}
	w.End(nil)
	publish()
	c.commit(f, w, l)
	return true, false
}

// noteReuse keeps requests from waiting for a response that must be validated for
// each of them.
func (c *Cache) noteReuse(f *flight, e *entry) {
	if now := timeNow(); e.cc.noCache || e.freshFor(now) <= 0 {
		c.solo.mark(f.r.url, now)
	}
}

// errUnwanted ends a body that nobody reads and that isn't worth finishing.
var errUnwanted = errors.New("cache: nobody waits for the rest")

const (
	patience    = 16 << 20 // bytes that may be missing of a body that is received although nobody reads it
	publishSize = 64 << 10 // bytes of a sibling's body that are awaited before any is passed on
)

// pump copies a body into the store.
func (c *Cache) pump(ctx context.Context, f *flight, w *store.Writer, a *answer, publish func()) error {
	var buf []byte
	select {
	case buf = <-c.buffers:
	default:
		buf = make([]byte, 64<<10)
	}
	defer func() {
		select {
		case c.buffers <- buf:
		default:
		}
	}()
	defer a.body.Close()
	var total int64
	for {
		n, err := a.body.Read(buf)
		total += int64(n)
		if err := w.Write(ctx, buf[:n]); err != nil {
			return err
		}
		switch {
		case err == io.EOF:
			return w.End(nil)
		case err != nil:
			return err
		case total >= publishSize:
			publish()
		}
		if total > patience && (a.length < 0 || a.length-total > patience) && c.abandon(f) {
			return errUnwanted
		}
	}
}

// commit puts a received body under its entry, unless its URL was invalidated
// meanwhile.
func (c *Cache) commit(f *flight, w *store.Writer, l *landing) {
	if f.poisoned.Load() {
		w.Abort()
		return
	}
	c.hints.learn(f.r.url, l.fields)
	if _, err := w.Commit(c.meta(l.entry)); err != nil {
		c.log.Warn("cannot store a response", "url", f.r.url, "error", err)
		return
	}
	c.Stored.Add(1)
	if f.stored != nil && f.stored.obj.Key() != l.id {
		c.store.DeleteObject(f.stored.obj) // its successor varies by other fields
	}
}

// peer returns the name of the sibling that gave the answer and its Cache-Status.
func (r *answer) peer() (string, []string) {
	if r.sibling == nil {
		return "", nil
	}
	return r.sibling.Peer, r.via
}
