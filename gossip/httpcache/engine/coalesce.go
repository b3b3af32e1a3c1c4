package engine

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// newFetch registers a fetch under key. If there is one already, it makes the caller a follower of
// that and returns it, and joined is true.
func (c *Cache) newFetch(r *request, key string, stored *found) (f *fetch, joined bool) {
	if key != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if other := c.joinable(key); other != nil {
			other.waiters.join(true)
			if c.cfg.Coalescer != nil {
				c.cfg.Coalescer.Joined()
			}
			return other, true
		}
	}
	f = &fetch{key: key, r: *r, stored: stored, began: c.tick(), ctx: detached{stopped: c.stopped, values: r.Context()}}
	if _, wanted := c.cfg.Source(r.Context()); wanted {
		f.ctx.cancelable()
	}
	f.waiters.join(false)
	if key != "" {
		if outdated := c.fetches[key]; outdated != nil {
			c.forgetLocked(outdated)
		}
		c.fetches[key] = f
	}
	return f, false
}

// waiters counts the requests that wait for a fetch, or for its body.
type waiters struct {
	n         atomic.Int64                  // all
	followers atomic.Int64                  // without the leader
	body      atomic.Pointer[bodies.Stream] // held while there are any
	ended     atomic.Pointer[found]         // removed when there are none: after a validation it must not be stored any longer
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
	if f.ctx.end != nil && !f.delivered() && c.abandon(f) {
		f.ctx.cancel()
	}
	c.deserted(f)
}

// deserted frees what is kept for the waiters of a fetch, if there are none. It is called when
// either changes.
func (c *Cache) deserted(f *fetch) {
	w := &f.waiters
	if w.n.Load() > 0 {
		return
	}
	if body := w.body.Load(); body != nil {
		body.Release()
	}
	if f := w.ended.Load(); f != nil {
		c.store.DeleteObject(f.obj)
	}
}

// abandon forgets the fetch if no request waits for it, and reports whether it did.
// A request that waits may not read the body yet.
func (c *Cache) abandon(f *fetch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters.n.Load() > 0 {
		return false
	}
	c.forgetLocked(f)
	return true
}

// forget ends the joining of a fetch, and the advertising of its result: the next request for its URL leads another.
func (c *Cache) forget(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(f)
}

func (c *Cache) forgetLocked(f *fetch) {
	if c.fetches[f.key] != f {
		return
	}
	delete(c.fetches, f.key)
	if f.advertised {
		f.advertised = false
		c.cfg.Withdraw(f.result.id)
	}
}

// joinable returns the fetch that requests of a key may join; nil = there is none. c.mu is held.
func (c *Cache) joinable(key string) *fetch {
	f := c.fetches[key]
	if f == nil {
		return nil
	}
	var got *result
	if f.delivered() {
		got = f.result
	}
	if c.tooOld(f, got) {
		return nil
	}
	return f
}

// tooOld reports whether the result of a fetch must not be stored, nor given to requests that come from now on: it was
// invalidated meanwhile, or is a sibling's and the origin has shown a later version. got = nil: there is none yet.
func (c *Cache) tooOld(f *fetch, got *result) bool {
	if got == nil || got.entry == nil {
		return c.outdated(f, nil)
	}
	resp := got.entry.Response
	return c.outdated(f, resp) || got.peer != "" && got.derived == nil && c.olderThanSeen(&f.r, resp)
}

// A reload has shown a new version for all: when its request began, and when that came, by the steady clock.
type reload struct{ began, came time.Duration }

// outdated reports whether the URL, or a tag of its response, was invalidated after the fetch began, or reloaded by a
// request after it. What a response is derived from may be what was there before the reload's answer came. A response
// that is not known yet (nil) may have any tag.
func (c *Cache) outdated(f *fetch, resp *rfc9111.Response) bool {
	var h http.Header
	if resp != nil {
		h = resp.Header
	}
	at, reloaded := c.reloaded.get(f.r.url)
	if reloaded && (f.began.steady < at.began || f.began.steady < at.came && c.isDerived(&f.r)) {
		return true
	}
	return c.invalidated.has(f.r.url, h, f.began) || c.purged.has(f.r.url, h, f.began)
}

// runBeside runs a fetch in the background of its leader's request.
func (c *Cache) runBeside(f *fetch) {
	if !c.work.Go(func() { c.run(f) }) {
		c.fail(f, &result{}, errStopped)
	}
}

// asNobody returns r as a request of the cache itself, which outlives r and accepts any whole
// response.
func asNobody(r *request) *request {
	clone := r.Clone(context.WithoutCancel(r.Context()))
	clone.Method, clone.Header = http.MethodGet, withoutConditions(r.Header)
	return &request{Request: clone, plain: r.plain, url: r.url, cc: rfc9111.RequestDirectives(nil), now: r.now, slice: r.slice}
}

// fetchUnasked fetches a response that no client waits for: it validates a stale copy that was
// already served (RFC 5861), or fetches an object of which a client wanted a part. While
// [maxUnasked] of these are under way it does nothing; a later request tries again.
func (c *Cache) fetchUnasked(r *request, key string, stored *found) {
	f, joined := c.newFetch(asNobody(r), key, stored)
	c.leave(f, joined)
	if joined {
		return
	}
	f.leave()
	if stored == nil && c.peek(key) != nil || !c.atMost(c.unasked, func() { c.run(f) }) {
		c.fail(f, &result{}, context.Canceled) // another has brought it: whoever has joined this one looks again
		return
	}
	c.Background.Add(1)
}

// conditional are the request fields that a fetch must not pass on, since it wants the whole
// response.
var conditional = []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"}

func withoutConditions(h http.Header) http.Header {
	h = maps.Clone(h)
	for _, name := range conditional {
		delete(h, name)
	}
	return h
}
