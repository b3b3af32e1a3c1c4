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

// arrives lets siblings get a fetch's outcome, as it arrives, until arrived is called when the body
// is stored or given up.
//
// No two caches wait for each other, since a response arrives only after its own source has begun
// to answer.
func (c *Cache) arrives(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := f.outcome.id; c.arriving[id] == nil && !c.outdated(f, f.entry.Response) {
		c.arriving[id], f.arriving = f, id
	}
}

func (c *Cache) arrived(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.arriving == "" {
		return
	}
	delete(c.arriving, f.arriving)
	if f.advertised {
		c.cfg.Withdraw(f.arriving)
	}
	f.arriving, f.advertised = "", false
}

// advertiseArriving adds a fetch's outcome to the digest, if it is arriving and may be advertised.
func (c *Cache) advertiseArriving(f *fetch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.advertised || f.arriving == "" || f.invalidated.Load() || f.outcome.derived != nil ||
		c.cfg.Advertise == nil || c.listUntil(f.outcome.entry, c.now()).IsZero() {
		return
	}
	f.advertised = true
	c.cfg.Advertise(f.arriving)
}

// Advertised yields the identities of all responses that are advertised to siblings, at
// least once each: the stored ones and the arriving ones.
func (c *Cache) Advertised() iter.Seq[string] {
	c.made()
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
		for id, f := range c.arriving {
			if f.advertised {
				arriving = append(arriving, id)
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
	if !f.outcome.body.followable() {
		return res, false
	}
	st := rfc9111.Status{Hit: true, HasTTL: true, TTL: f.entry.freshFor(c.now()), Detail: "arriving"}
	res, ok = c.serveArriving(w, r, &f.outcome, st, nil)
	res.Outcome = LocalHit
	return res, ok
}

// await waits for the answer of a fetch under way that may answer r, but no longer than r
// prefers ([peering.PreferredWait]): siblings that know of the fetch set that. It reports whether
// there is an answer.
func (c *Cache) await(r *request) bool {
	wait := peering.PreferredWait(r.Header)
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

// arrivingFor finds the fetch whose arriving outcome answers r, and makes r one of its followers.
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
