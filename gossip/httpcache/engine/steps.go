package engine

import (
	"bytes"
	"net/http"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// What a fetch does with an answer that is not stored, or with none. See [Cache.run].

// noAnswer ends a fetch that no source answers: with a stale copy, or with the error.
func (c *Cache) noAnswer(f *fetch, err error) {
	if f.over.Load() != nil || IsClients(err) || !c.staleInstead(f, 0) {
		c.fail(f, newResult(f), err)
	}
}

// confirm takes a 304: it delivers the stored response, or gives it up if the 304 confirms another one. Then the
// whole response is requested.
func (c *Cache) confirm(f *fetch, a *answer) {
	a.close()
	if f.stored.entry.ConfirmedBy(a.header) {
		c.deliver(f, c.confirmed(f, a), fetchConfirmed)
	} else {
		f.stored = nil
	}
}

// beginSlices makes a fetch whose answer shows that the object is to be kept in slices one of the first slice. Requests that
// wait for the whole look again.
func (c *Cache) beginSlices(f *fetch, a *answer) *answer {
	if f.stored != nil {
		c.keep(f.r.url)
		c.store.DeleteObject(f.stored.obj)
		f.stored = nil
	}
	c.large.add(f.r.url, c.now(), largeTime)
	f.outcome.open, f.r.slice = newOpened(a), 1
	key := c.fetchKey(&f.r, nil, f.r.fields)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.key != "" && c.fetches[f.key] == f && c.fetches[key] == nil {
		c.fetches[key] = f
		c.forgetLocked(f)
		f.key = key
	}
	return f.outcome.open.firstSlice()
}

// skip drops an answer that is not the slice that was requested. After a sibling's, the next source is asked; after
// the origin's, the object is not fetched in slices.
func (c *Cache) skip(f *fetch, a *answer) {
	a.close()
	if a.sibling == nil {
		c.fail(f, newResult(f), errUnsliced)
	}
}

// staleInstead delivers a stale copy in place of the origin's answer, if that is missing (status 0)
// or an error: the stored copy or, without one, a sibling's. It reports whether there is one, or whether
// the fetch has ended since a sibling has slices.
func (c *Cache) staleInstead(f *fetch, status int) bool {
	if f.stored == nil && (status == 0 || status >= http.StatusInternalServerError) && c.sliceElsewhere(f) {
		c.fail(f, newResult(f), errSliced)
		return true
	}
	if f.stored == nil || !c.standsIn(f, status) {
		return c.takeStale(f, status)
	}
	res := newResult(f)
	res.obj, res.entry, res.id = f.stored, f.stored.entry, f.stored.obj.Key()
	_, res.fields = rfc9111.SplitIdentity(res.id)
	res.stale, res.fwdStatus = true, status
	c.forget(f)
	c.deliver(f, res, fetchStale)
	return true
}

// confirmed returns the result of a successful validation: the stored response with an updated
// header. Like an answer, a 304 may be for the leader alone. Then the stored response stays as it was
// if others may still validate it, and is otherwise removed once the leader has its body.
func (c *Cache) confirmed(f *fetch, a *answer) *result {
	old := f.stored
	e := c.freshened(old.entry, a)
	res := newResult(f)
	res.entry, res.id, res.confirmed, res.fwdStatus = e, old.obj.Key(), true, a.status
	_, res.fields = rfc9111.SplitIdentity(res.id)
	res.from(a)
	res.obj = &found{obj: old.obj, entry: e}
	c.noteReuse(f, e)
	if a.sibling == nil {
		c.saw(&f.r, e.Response)
	}
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
// answers to a request for a slice is nothing to other clients, unless it is that slice, or the whole.
func (c *Cache) mayStore(f *fetch, a *answer) bool {
	return (f.r.slice == 0 || a.status == http.StatusPartialContent) &&
		(a.derived == nil || a.derived.recoded) && !c.outdated(f, a.response()) && f.r.obstacle(a.response()) == 0
}

// aboutPage reports whether an answer of this status takes the place of one that was stored before (RFC 9111 section
// 4.3.3), and is not an error, or about the requests that were sent.
func aboutPage(status int) bool {
	return status < http.StatusInternalServerError && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// handOver delivers an answer that can't be shared to the leader alone. Nothing of it is kept, so it is cut where its
// source breaks off. What it replaces is removed before the client can send another request.
func (c *Cache) handOver(f *fetch, a *answer) {
	switch {
	case f.r.slice > 0 && a.status == http.StatusPartialContent: // the client may want less, or more; its rest asks for the whole
		a.close()
		c.fail(f, newResult(f), errUnsliced)
		return
	case a.status == http.StatusPartialContent, f.r.slice > 0 && a.status != http.StatusOK: // it says nothing of the whole
	case !f.r.cc.NoStore && a.derived == nil: // otherwise other requests may still share theirs
		c.hitForMiss.add(f.r.url, c.now(), hitForMissTime)
	}
	if f.stored != nil && aboutPage(a.status) && a.sibling == nil && !f.r.cc.NoStore {
		c.store.DeleteObject(f.stored.obj)
	}
	if in := f.src.siblings; a.sibling == nil && a.derived == nil && a.status != http.StatusPartialContent && (in == nil || f.src.f != f || in.Asked > 0 || f.stored != nil) {
		c.saw(&f.r, a.response()) // otherwise no sibling is known to have a copy
	}
	res := newResult(f)
	res.fwdStatus, res.stale = a.status, a.stale
	res.from(a)
	if a.sibling == nil && a.status != http.StatusPartialContent {
		if res.obstacle = f.r.obstacle(a.response()); res.obstacle != 0 {
			c.NotStored[res.obstacle].Add(1)
		}
	}
	c.pace(a)
	res.answer = a
	c.deliver(f, res, fetchHandedOver)
}
