package cache

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// AdvertiseArriving is for how long a body must have been arriving before it is
// advertised. What arrives sooner is advertised when it is whole: the digest would
// not be there before it.
const AdvertiseArriving = 250 * time.Millisecond

// arriving are the responses whose bodies are being received, by identity.
// Siblings that ask for one get it as it comes.
//
// That makes no circles: a response is here only once its own source, which is not
// here for its own sake, has begun to answer.
type arriving map[string]*arrival

// An arrival is one of them.
type arrival struct {
	f *fetch
	r *result

	mu         sync.Mutex
	over       bool
	advertised bool
}

// arrives makes a result that was delivered known to siblings, until the returned
// function is called: when it is in the store or given up.
func (c *Cache) arrives(f *fetch, r *result) (over func()) {
	a := &arrival{f: f, r: r}
	c.mu.Lock()
	if c.arriving[r.id] != nil || c.outdated(f, r.entry.Response) {
		c.mu.Unlock()
		return func() {}
	}
	c.arriving[r.id] = a
	c.mu.Unlock()
	clock := time.AfterFunc(AdvertiseArriving, func() { c.advertise(a) })
	return func() {
		clock.Stop()
		c.mu.Lock()
		delete(c.arriving, r.id)
		c.mu.Unlock()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.over = true
		if a.advertised {
			c.cfg.Withdraw(r.id)
		}
	}
}

// advertise puts an arrival into the digest, if what it brings may be.
func (c *Cache) advertise(a *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.f.invalidated.Load() || a.r.derived != nil || c.cfg.Advertise == nil || c.listUntil(a.r.entry, c.now()).IsZero() {
		return
	}
	a.advertised = true
	c.cfg.Advertise(a.r.id)
}

// Advertised yields the identity of everything that is advertised to siblings, at
// least once: what is stored, and what is arriving.
func (c *Cache) Advertised() iter.Seq[string] {
	return func(yield func(string) bool) {
		for o := range c.store.Listed() {
			more := true
			withAnyVariant(func(id string) { more = more && yield(id) })(o.Key())
			if !more {
				return
			}
		}
		c.mu.Lock()
		all := slices.Collect(maps.Values(c.arriving))
		c.mu.Unlock()
		for _, a := range all {
			a.mu.Lock()
			advertised := a.advertised && !a.over
			a.mu.Unlock()
			more := true
			if advertised {
				withAnyVariant(func(id string) { more = more && yield(id) })(a.r.id)
			}
			if !more {
				return
			}
		}
	}
}

// attach answers a question by a response that is still arriving. It isn't ok, and
// nothing was sent, if there is none that makes progress.
func (c *Cache) attach(w http.ResponseWriter, r *request) (res Result, ok bool) {
	a := c.arrivingFor(r)
	if a == nil {
		return res, false
	}
	defer a.f.waiters.leave(true)
	if a.r.body.stalled() {
		return res, false
	}
	st := rfc9111.Status{Hit: true, HasTTL: true, TTL: a.r.entry.freshFor(c.now()), Detail: "arriving"}
	res, ok = c.serveArriving(w, r, a.r, st, nil)
	res.Outcome = LocalHit
	return res, ok
}

// await waits for the fetch under way of what r asks for, if there is one, until
// its answer begins and for as long as r prefers ([sibling.PreferredWait]): siblings
// that were told of the fetch say so. It reports whether to look again.
func (c *Cache) await(r *request) bool {
	wait := sibling.PreferredWait(r.Header)
	if wait <= 0 {
		return false
	}
	var f *fetch
	ids := c.identities(r)
	c.mu.Lock()
	for _, id := range ids {
		if f = c.fetches[id]; f != nil {
			f.waiters.join(true)
			break
		}
	}
	c.mu.Unlock()
	if f == nil {
		return false
	}
	defer f.waiters.leave(true)
	clock := time.NewTimer(wait)
	defer clock.Stop()
	select {
	case <-f.ready:
		return true
	case <-clock.C:
	case <-r.Context().Done():
	}
	return false
}

// arrivingFor finds the arrival that answers r, and makes r one of those who wait
// for it.
func (c *Cache) arrivingFor(r *request) *arrival {
	c.mu.Lock()
	none := len(c.arriving) == 0
	c.mu.Unlock()
	if none {
		return nil
	}
	ids := c.identities(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if a := c.arriving[id]; a != nil && !a.f.invalidated.Load() && c.selects(a.r, r) {
			a.f.waiters.join(true)
			return a
		}
	}
	return nil
}
