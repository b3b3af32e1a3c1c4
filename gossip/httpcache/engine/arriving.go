package engine

import (
	"iter"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// arrivingTime is how long a body must have been arriving before it is advertised. A body that is
// complete sooner is advertised then: the other peers would not get the digest earlier.
const arrivingTime = 250 * time.Millisecond

// Siblings get a fetch's result as it arrives, and find it in the digest until it is stored, or no request may join it
// any more. No two caches wait for each other, since a response arrives only after its own source has begun to answer.

// advertiseArriving adds a fetch's result to the digest, if it is arriving and may be advertised.
func (c *Cache) advertiseArriving(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.advertised || c.cfg.Advertise == nil || c.arrivingAt(f.key) != f ||
		f.result.derived != nil || c.listUntil(f.result.entry, c.now()).IsZero() {
		return
	}
	f.advertised = true
	c.cfg.Advertise(f.result.id)
}

// arrivingAt returns the fetch of a key whose body arrives; nil = there is none. c.mu is held.
func (c *Cache) arrivingAt(key string) *fetch {
	f := c.joinable(key)
	if f == nil || !f.delivered() || f.result.body == nil {
		return nil
	}
	return f
}

// Advertised yields the identities of all responses that are advertised to siblings, at
// least once each: the stored ones and the arriving ones.
func (c *Cache) Advertised() iter.Seq[string] {
	return func(yield func(string) bool) {
		all := func(id string) bool {
			more := true
			withAnyVariant(func(id string) { more = more && yield(id) })(id)
			return more
		}
		for o := range c.store.Listed() {
			if !all(o.Key()) {
				return
			}
		}
		var arriving []string
		c.mu.Lock()
		for _, f := range c.fetches {
			if f.advertised {
				arriving = append(arriving, f.result.id)
			}
		}
		c.mu.Unlock()
		for _, id := range arriving {
			if !all(id) {
				return
			}
		}
	}
}

// attach answers a sibling's request with a response that is still arriving. It isn't ok, and
// nothing was sent, if there is none that makes progress.
func (c *Cache) attach(w http.ResponseWriter, r *request) (res Result, ok bool) {
	f := c.arrivingFor(r)
	if f == nil {
		return res, false
	}
	defer c.leave(f, true)
	if !f.result.body.followable() {
		return res, false
	}
	st := rfc9111.Status{Hit: true, HasTTL: true, TTL: f.result.entry.freshFor(c.now()), Detail: "arriving"}
	res, ok = c.serveArriving(w, r, f.result, st, nil)
	res.Outcome = LocalHit
	return res, ok
}

// awaitAnswer waits for the answer of a fetch under way that may answer r, but no longer than r
// prefers ([peering.PreferredWait]): siblings that know of the fetch set that. It reports whether
// there is an answer.
func (c *Cache) awaitAnswer(r *request) bool {
	wait := peering.PreferredWait(r.Header)
	if wait <= 0 {
		return false
	}
	var f *fetch
	ids := c.identities(r)
	c.mu.Lock()
	for _, id := range ids {
		if f = c.joinable(id); f != nil {
			f.waiters.join(true)
			break
		}
	}
	c.mu.Unlock()
	if f == nil {
		return false
	}
	defer c.leave(f, true)
	clock := time.NewTimer(wait)
	defer clock.Stop()
	select {
	case <-f.ready():
		return true
	case <-clock.C:
	case <-r.Context().Done():
	}
	return false
}

// arrivingFor finds the fetch whose arriving result answers r, and makes r one of its followers.
func (c *Cache) arrivingFor(r *request) *fetch {
	c.mu.Lock()
	none := len(c.fetches) == 0
	c.mu.Unlock()
	if none {
		return nil
	}
	ids := c.identities(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if f := c.arrivingAt(id); f != nil && c.selects(f.result, r) {
			f.waiters.join(true)
			return f
		}
	}
	return nil
}
