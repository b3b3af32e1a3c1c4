package main

import "context"

// A finder knows, more or less, what the other caches hold.
type finder interface {
	// came and left tell it of a change in a cache's contents.
	came(cache int, key uint32)
	left(cache int, key uint32)
	// tick tells it the time, before every request.
	tick(now float64)
	// ask appends to dst the caches to ask for a key that this one lacks, best first.
	ask(dst []int, cache int, key uint32) []int
	// account adds what updates have cost, and what it keeps, to the outcomes.
	account(*outcomes)
}

// A way of cooperating.
type way struct {
	name string
	find func(c *cluster) (finder, error)
	// queries says that candidates are asked all at once by small messages before
	// one is fetched from; else they are fetched from one after the other.
	queries bool
	all     bool // everyone is asked, so that a no is no false hit
	few     bool // copies of what another cache has leave a full cache first
	owner   bool // an object is kept by its owner only
}

// What messages take, in bytes, without the name of the object. An ICP query has
// a header of 20, an address of 4 and a zero byte; its answer 20 and a zero byte.
// A fetch that fails is an HTTP request with only-if-cached and a 504.
const (
	queryBytes       = 25
	queryAnswerBytes = 21
	failedFetchBytes = 300
)

// replay sends all requests through caches that cooperate in one way.
func (c *cluster) replay(ctx context.Context, w way) (o outcomes, err error) {
	if w.owner {
		return c.replayOwners(ctx)
	}
	f, err := w.find(c)
	if err != nil {
		return o, err
	}
	nodes := c.empty()
	if w.few {
		for i := range nodes {
			nodes[i] = newFewCopies(nodes[i], c.limit)
		}
	}
	var candidates []int
	for i, r := range c.requests {
		if i%4096 == 0 && ctx.Err() != nil {
			return o, ctx.Err()
		}
		f.tick(r.time)
		node := nodes[r.cache]
		if held, ok := node.get(r.key); ok && held.fresh(r.size) {
			o.local++
			continue
		}
		candidates = f.ask(candidates[:0], r.cache, r.key)
		found := c.fetch(w, nodes, r, candidates, &o)
		if !found {
			for at, other := range nodes {
				if copied, ok := other.peek(r.key); at != r.cache && ok && copied.fresh(r.size) {
					o.missed++
					break
				}
			}
		}
		node.put(object{r.key, r.size}, found,
			func(key uint32) { f.came(r.cache, key) },
			func(key uint32) { f.left(r.cache, key) })
	}
	f.account(&o)
	return o, nil
}

// fetch asks the candidates, and reports whether one of them had the object.
func (c *cluster) fetch(w way, nodes []copies, r dealt, candidates []int, o *outcomes) bool {
	name := len(c.names[r.key])
	if w.queries {
		o.queries += 2 * len(candidates)
		o.queryBytes += len(candidates) * (queryBytes + queryAnswerBytes + 2*name)
		if len(candidates) > 0 {
			o.roundTrips++
		}
	}
	found, stale := false, false
	for _, at := range candidates {
		held, ok := nodes[at].peek(r.key)
		switch {
		case ok && held.fresh(r.size) && !found:
			found = true
			nodes[at].get(r.key) // only who sends the object takes it for wanted
		case ok && !held.fresh(r.size):
			stale = true
		case !ok && !w.all:
			o.falseHits++
		}
		if w.queries {
			continue // all were asked
		}
		if found {
			break
		}
		o.queries += 2
		o.queryBytes += failedFetchBytes + name
		o.roundTrips++
	}
	switch {
	case found:
		o.remote++
	case stale:
		o.stale++
	}
	return found
}

// replayOwners gives every object to the cache with the highest hash of cache and
// key; the others keep no copies and ask it each time.
func (c *cluster) replayOwners(ctx context.Context) (o outcomes, err error) {
	nodes := c.empty()
	ignore := func(uint32) {}
	for i, r := range c.requests {
		if i%4096 == 0 && ctx.Err() != nil {
			return o, ctx.Err()
		}
		owner, highest := 0, uint64(0)
		for at := range nodes {
			if h := mix64(uint64(c.keys[r.key]) ^ mix64(uint64(at)+golden64)); h >= highest {
				owner, highest = at, h
			}
		}
		held, ok := nodes[owner].get(r.key)
		hit := ok && held.fresh(r.size)
		switch {
		case hit && owner == r.cache:
			o.local++
		case hit:
			o.remote++
		case owner != r.cache:
			// The owner fetches and passes on: the request goes through it in vain.
			o.queries += 2
			o.queryBytes += failedFetchBytes + len(c.names[r.key])
			o.roundTrips++
		}
		if !hit {
			nodes[owner].put(object{r.key, r.size}, false, ignore, ignore)
		}
	}
	return o, nil
}
