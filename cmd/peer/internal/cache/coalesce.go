package cache

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// newFetch registers a fetch under key, unless there is one already, which it
// returns with joined = true, having made the caller one of its followers.
func (c *Cache) newFetch(r *request, key string, stored *found) (f *fetch, joined bool) {
	if key != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if other := c.fetches[key]; other != nil {
			other.waiters.join(true)
			if c.cfg.Coalescer != nil {
				c.cfg.Coalescer.Joined()
			}
			return other, true
		}
	}
	f = &fetch{key: key, r: *r, stored: stored, began: c.now(), ctx: detached{c.stopped, r.Context()}}
	f.waiters.join(false)
	if key != "" {
		c.fetches[key] = f
	}
	return f, false
}

// waiters counts the requests that a fetch answers.
type waiters struct {
	n         atomic.Int64                 // all
	followers atomic.Int64                 // all but the leader
	body      atomic.Pointer[store.Writer] // held until there are none any more
	ended     atomic.Pointer[store.Object] // removed then: a validation forbids to store it any longer
}

func (w *waiters) join(follower bool) {
	if follower {
		w.followers.Add(1)
	}
	w.n.Add(1)
}

func (c *Cache) leave(f *fetch, follower bool) {
	if follower {
		f.waiters.followers.Add(-1)
	}
	f.waiters.n.Add(-1)
	c.deserted(f)
}

// deserted frees what is kept for those that wait for a fetch, if nobody does. It is called when
// either changed.
func (c *Cache) deserted(f *fetch) {
	w := &f.waiters
	if w.n.Load() > 0 {
		return
	}
	if body := w.body.Load(); body != nil {
		body.Release()
	}
	if obj := w.ended.Load(); obj != nil {
		c.store.DeleteObject(obj)
	}
}

// abandon lets nobody join the fetch any more if nobody waits for it now, and
// reports whether that is so. A request that waits need not read the body yet.
func (c *Cache) abandon(f *fetch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters.n.Load() > 0 {
		return false
	}
	c.forgetLocked(f)
	return true
}

// forget lets nobody join the fetch any more: the next request for its URL leads
// another.
func (c *Cache) forget(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(f)
}

func (c *Cache) forgetLocked(f *fetch) {
	if c.fetches[f.key] == f {
		delete(c.fetches, f.key)
	}
}

// invalidateFetches keeps the fetches that are concerned from storing what they bring, and
// new requests from joining them, since it may be older than what removed the responses of
// those URLs. The result that concerned is given is nil if there is none yet.
func (c *Cache) invalidateFetches(concerned func(*fetch, *result) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.fetches {
		var got *result
		if f.delivered() {
			got = f.result
		}
		if concerned(f, got) {
			f.invalidated.Store(true)
			c.forgetLocked(f)
		}
	}
	for _, f := range c.arriving { // of fetches, too, that nobody can join
		if concerned(f, &f.outcome) {
			f.invalidated.Store(true)
		}
	}
}

// invalidateTag does so for those whose response has a tag. Nobody may join those that have no
// answer yet: their tags are looked at when it comes.
func (c *Cache) invalidateTag(tag string) {
	var unknown []*fetch
	c.invalidateFetches(func(f *fetch, got *result) bool {
		if got == nil {
			unknown = append(unknown, f)
			return false
		}
		return got.entry != nil && hasTag(got.entry.Header, tag)
	})
	for _, f := range unknown {
		c.forget(f)
	}
}

// outdated reports whether the URL, or a tag of its response, was invalidated since the fetch
// began. The tombstones know that also for fetches that nobody can join, which are not in
// c.fetches. A fetch that began at that very moment began after it.
func (c *Cache) outdated(f *fetch, resp *rfc9111.Response) bool {
	return f.invalidated.Load() || c.tombstones.invalidated(f.r.url, resp.Header, f.began.ago(-1))
}

// lead runs a fetch in the background of its leader's request.
func (c *Cache) lead(f *fetch) {
	c.background.Add(1)
	go func() {
		defer c.background.Done()
		growStack(0)
		c.run(f)
	}()
}

// asNobody returns r as a request of no client, which outlives r: any whole response will do.
func asNobody(r *request) *request {
	clone := r.Clone(context.WithoutCancel(r.Context()))
	clone.Method, clone.Header = http.MethodGet, withoutConditions(r.Header)
	return &request{Request: clone, plain: r.plain, url: r.url, cc: rfc9111.RequestDirectives(nil), now: r.now}
}

// fetchUnasked fetches what no client waits for: it validates a stale copy that was served
// already (RFC 5861), or gets the whole of what a client wanted a part of. While
// [maxUnasked] are under way it does nothing; a later request may.
func (c *Cache) fetchUnasked(r *request, key string, stored *found) {
	select {
	case c.unasked <- struct{}{}:
	default:
		return
	}
	f, joined := c.newFetch(asNobody(r), key, stored)
	c.leave(f, joined)
	if joined {
		<-c.unasked
		return
	}
	f.leave()
	c.Background.Add(1)
	c.background.Go(func() {
		defer func() { <-c.unasked }()
		c.run(f)
	})
}

// conditional are the request fields that a fetch for the cache must not pass
// on: it wants the whole response.
var conditional = []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"}

func withoutConditions(h http.Header) http.Header {
	h = maps.Clone(h)
	for _, name := range conditional {
		delete(h, name)
	}
	return h
}
