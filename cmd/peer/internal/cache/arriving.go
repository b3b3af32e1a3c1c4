package cache

import (
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ListArriving is for how long a body must have been arriving before siblings may
// be told of it. What arrives sooner is listed when it is whole: the digest would
// not be there before it.
const ListArriving = 250 * time.Millisecond

// arriving are the responses whose bodies are being received, by identity.
// Siblings that ask for one get it as it comes.
//
// That makes no circles: a response is here only once its own source, which is not
// here for its own sake, has begun to answer.
type arriving map[string]*arrival

// An arrival is one of them.
type arrival struct {
	f *flight
	l *landing

	mu     sync.Mutex
	over   bool
	listed bool
}

// arrives makes a landing that was published known to siblings, until the returned
// function is called: when it is in the store or given up.
func (c *Cache) arrives(f *flight, l *landing) (over func()) {
	a := &arrival{f: f, l: l}
	c.mu.Lock()
	if c.arriving[l.id] != nil || f.poisoned.Load() {
		c.mu.Unlock()
		return func() {}
	}
	c.arriving[l.id] = a
	c.mu.Unlock()
	clock := time.AfterFunc(ListArriving, func() { c.listArriving(a) })
	return func() {
		clock.Stop()
		c.mu.Lock()
		delete(c.arriving, l.id)
		c.mu.Unlock()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.over = true
		if a.listed {
			c.cfg.Store.Hooks.Unlisted(l.id)
		}
	}
}

// listArriving puts an arrival into the digest, if what it brings may be listed.
func (c *Cache) listArriving(a *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := c.cfg.Store.Hooks; a.over || a.f.poisoned.Load() || h.Listed == nil || h.Unlisted == nil || c.listUntil(a.l.entry, timeNow()).IsZero() {
		return
	}
	a.listed = true
	c.cfg.Store.Hooks.Listed(a.l.id)
}

// Listed yields the identity of everything that siblings are told of, at least
// once: what is stored, and what is arriving.
func (c *Cache) Listed() iter.Seq[string] {
	return func(yield func(string) bool) {
		for o := range c.store.Listed() {
			if !yield(o.Key()) {
				return
			}
		}
		c.mu.Lock()
		all := slices.Collect(maps.Values(c.arriving))
		c.mu.Unlock()
		for _, a := range all {
			a.mu.Lock()
			listed := a.listed && !a.over
			a.mu.Unlock()
			if listed && !yield(a.l.id) {
				return
			}
		}
	}
}

// attach answers a question by a response that is still arriving. It isn't ok, and
// nothing was sent, if there is none.
func (c *Cache) attach(w http.ResponseWriter, r *request) (res Result, ok bool) {
	a := c.arrivingFor(r)
	if a == nil {
		return res, false
	}
	defer a.f.waiters.leave()
	st := status{hit: true, hasTTL: true, ttl: a.l.entry.freshFor(timeNow()), detail: "arriving"}
	res, ok = c.serveArriving(w, r, a.l, st, nil)
	res.Outcome = LocalHit
	return res, ok
}

// maxWait bounds how long a question waits for a fetch that is under way.
const maxWait = 10 * time.Second

// await waits for the fetch under way of what r asks for, if there is one, until
// its answer begins and for as long as r prefers (RFC 7240 section 4.3): siblings
// that were told of the fetch say so. It reports whether to look again.
func (c *Cache) await(r *request) bool {
	wait := preferredWait(r.Header)
	if wait <= 0 {
		return false
	}
	var f *flight
	ids := c.identities(r)
	c.mu.Lock()
	for _, id := range ids {
		if f = c.flights[id]; f != nil {
			f.waiters.join()
			break
		}
	}
	c.mu.Unlock()
	if f == nil {
		return false
	}
	defer f.waiters.leave()
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

func preferredWait(h http.Header) time.Duration {
	for _, line := range h["Prefer"] {
		for line != "" {
			var item string
			item, line = cutList(line)
			if arg, ok := strings.CutPrefix(trimLower(item), "wait="); ok {
				n, err := strconv.ParseUint(arg, 10, 16)
				if err == nil {
					return min(time.Duration(n)*time.Second, maxWait)
				}
			}
		}
	}
	return 0
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
		if a := c.arriving[id]; a != nil && !a.f.poisoned.Load() && a.l.selects(r) {
			a.f.waiters.join()
			return a
		}
	}
	return nil
}
