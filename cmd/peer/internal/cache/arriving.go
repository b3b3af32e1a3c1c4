package cache

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// AdvertiseArriving is for how long a body must have been arriving before it is
// advertised. What arrives sooner is advertised when it is whole: the digest would
// not be there before it.
const AdvertiseArriving = 250 * time.Millisecond

// arrives makes a fetch's outcome, whose body is being received, known to siblings, until
// it arrived: it is in the store or given up. Those that ask for it get it as it comes.
//
// That makes no circles: a response is here only once its own source, which is not
// here for its own sake, has begun to answer.
func (c *Cache) arrives(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.arriving[f.outcome.id] != nil || c.outdated(f, f.entry.Response) {
		return
	}
	c.arriving[f.outcome.id] = f
	f.clock = c.alarm(f, AdvertiseArriving)
}

func (c *Cache) arrived(f *fetch) {
	if f.clock == nil {
		return
	}
	c.silence(f.clock)
	c.mu.Lock()
	delete(c.arriving, f.outcome.id)
	c.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	if f.advertised {
		c.cfg.Withdraw(f.outcome.id)
	}
}

// wakeUp puts what is arriving into the digest, if it may be.
func (f *fetch) wakeUp() {
	c := f.sources.c
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.invalidated.Load() || f.outcome.derived != nil || c.cfg.Advertise == nil || c.listUntil(f.outcome.entry, c.now()).IsZero() {
		return
	}
	f.advertised = true
	c.cfg.Advertise(f.outcome.id)
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
		for _, f := range all {
			f.mu.Lock()
			advertised := f.advertised && !f.over
			f.mu.Unlock()
			more := true
			if advertised {
				withAnyVariant(func(id string) { more = more && yield(id) })(f.outcome.id)
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
	f := c.arrivingFor(r)
	if f == nil {
		return res, false
	}
	defer f.waiters.leave(true)
	if f.outcome.body.stalled() {
		return res, false
	}
	st := rfc9111.Status{Hit: true, HasTTL: true, TTL: f.entry.freshFor(c.now()), Detail: "arriving"}
	res, ok = c.serveArriving(w, r, &f.outcome, st, nil)
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
	case <-f.ready():
		return true
	case <-clock.C:
	case <-r.Context().Done():
	}
	return false
}

// arrivingFor finds the fetch whose arriving outcome answers r, and makes r one of those
// who wait for it.
func (c *Cache) arrivingFor(r *request) *fetch {
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
		if f := c.arriving[id]; f != nil && !f.invalidated.Load() && c.selects(&f.outcome, r) {
			f.waiters.join(true)
			return f
		}
	}
	return nil
}
