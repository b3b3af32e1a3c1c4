package caches

import (
	"slices"

	"github.com/summarycache/summarycache/sim/lab"
)

// A finder knows, more or less exactly, what the other caches hold.
type finder interface {
	// came and left say that a cache's contents changed.
	came(cache int, key uint32)
	left(cache int, key uint32)
	// tick sets the time, before every request.
	tick(now float64)
	// candidates appends to dst the caches to ask for a key that this one lacks, best first.
	candidates(dst []int, cache int, key uint32) []int
	// account adds the cost of updates and the memory to the outcomes.
	account(*Outcomes)
}

// A Way of cooperating.
type Way struct {
	Name string
	find func(c *Cluster) (finder, error)
	// queries says that all candidates are queried at once by small messages before a
	// fetch from one of them. Otherwise they are tried one after the other.
	queries bool
	all     bool    // all caches are queried, so negative answers do not count as false hits
	few     bool    // copies of another cache's objects leave a full cache first
	again   bool    // such a copy is stored only on the second request
	Gossip  bool    // caches find each other by membership
	near    bool    // a cache asks those of its zone first
	owners  int     // only so many owners store an object; 0 if all caches store what they get
	hot     bool    // a ninth of a cache is for objects that it does not own
	faster  float64 // speed of the requests, relative to the trace; 0 is 1
}

// At returns the way with the trace's requests so many times as fast.
func (w Way) At(speed float64) Way {
	w.faster = speed
	return w
}

// Speed is how many times as fast as in the trace requests come, at least 1.
func (w Way) Speed() float64 { return max(1, w.faster) }

// Sizes of messages in bytes, without the name of the object. An ICP query has a header of
// 20, an address of 4 and a zero byte; its answer has 20 and a zero byte. A fetch that
// fails is an HTTP request with only-if-cached and a 504.
const (
	queryBytes       = 25
	queryAnswerBytes = 21
	failedFetchBytes = 300
)

// Replay sends all requests through caches that cooperate in one way.
func (c *Cluster) Replay(w Way) (o Outcomes, err error) {
	if w.owners > 0 {
		return c.replayOwners(w)
	}
	f, err := w.find(c)
	if err != nil {
		return o, err
	}
	nodes := c.empty(1)
	var asked []copies // recently requested keys, as many as the fullest cache has objects
	for range c.caches {
		asked = append(asked, newLRU(int64(c.most), false))
	}
	ignore := func(uint32) {}
	if w.few {
		for i := range nodes {
			nodes[i] = newFewCopies(nodes[i], c.limit, c.sliced)
		}
	}
	var candidates []int
	for _, r := range c.requests {
		f.tick(r.time / w.Speed())
		node := nodes[r.cache]
		if held, ok := node.get(r.key); ok && held.fresh(r.size) {
			o.Local++
			continue
		}
		candidates = f.candidates(candidates[:0], r.cache, r.key)
		found := c.fetch(w, nodes, r, candidates, &o)
		if !found {
			o.FetchedBytes += r.size
			for at, other := range nodes {
				if copied, ok := other.peek(r.key); at != r.cache && ok && copied.fresh(r.size) {
					o.Missed++
					break
				}
			}
		}
		if w.again {
			_, before := asked[r.cache].get(r.key)
			asked[r.cache].put(object{key: r.key}, false, ignore, ignore)
			if found && !before {
				continue
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
func (c *Cluster) fetch(w Way, nodes []copies, r request, candidates []int, o *Outcomes) bool {
	name := len(c.names[r.key])
	if w.queries {
		o.Queries += 2 * len(candidates)
		o.QueryBytes += len(candidates) * (queryBytes + queryAnswerBytes + 2*name)
		if len(candidates) > 0 {
			o.RoundTrips++
		}
	}
	if w.near {
		other := func(at int) int { return min(1, (at+zones-r.cache%zones)%zones) } // 0 = in the same zone
		slices.SortStableFunc(candidates, func(a, b int) int { return other(a) - other(b) })
	}
	found, stale := false, false
	for _, at := range candidates {
		held, ok := nodes[at].peek(r.key)
		switch {
		case ok && held.fresh(r.size) && !found:
			found = true
			o.moves(at, r.cache, r.size)
			nodes[at].get(r.key) // counts as a request only at the cache that sends the object
		case ok && !held.fresh(r.size):
			stale = true
		case !ok && !w.all:
			o.FalseHits++
		}
		if w.queries {
			continue // all are queried anyway
		}
		if found {
			break
		}
		o.Queries += 2
		o.QueryBytes += failedFetchBytes + name
		o.RoundTrips++
	}
	switch {
	case found:
		o.Remote++
	case stale:
		o.Stale++
	}
	return found
}

// hotOneIn: one in so many fetched objects is stored in groupcache's hot cache.
const hotOneIn = 10

// replayOwners assigns each object to the caches with the highest hashes of cache and key. The
// first of these owners fetches it and sends it to the others. Any other cache asks the owners
// each time, one after the other, except for objects in its hot cache.
func (c *Cluster) replayOwners(w Way) (o Outcomes, err error) {
	share := 1.0
	var hot []copies
	if w.hot {
		// Groupcache's hot cache grows to an eighth of the owned objects.
		share, hot = 8./9, c.empty(1./9)
	}
	nodes := c.empty(share)
	ignore := func(uint32) {}
	for i, r := range c.requests {
		if w.hot {
			if held, ok := hot[r.cache].get(r.key); ok && held.fresh(r.size) {
				o.Local++
				continue
			}
		}
		owners := c.owners(r.key, w.owners)
		first := owners[0]
		if at := slices.Index(owners, r.cache); at > 0 {
			owners[0], owners[at] = owners[at], owners[0] // a cache asks itself first
		}
		from := -1
		for _, at := range owners {
			if held, ok := nodes[at].get(r.key); ok && held.fresh(r.size) {
				from = at
				break
			}
			if at != r.cache {
				// The owner has to fetch the object: the request to it was a miss.
				o.Queries += 2
				o.QueryBytes += failedFetchBytes + len(c.names[r.key])
				o.RoundTrips++
			}
		}
		switch {
		case from == r.cache:
			o.Local++
		case from >= 0:
			o.Remote++
			o.moves(from, r.cache, r.size)
		case first != r.cache:
			o.moves(first, r.cache, r.size)
		}
		if from < 0 {
			o.FetchedBytes += r.size
		}
		for _, at := range owners {
			if at == from {
				break // the rest were not asked
			}
			if nodes[at].put(object{r.key, r.size}, false, ignore, ignore) && at != r.cache && (from >= 0 || at != first) {
				o.Updates++
				o.UpdateBytes += updateHeader + len(c.names[r.key])
				o.moves(first, at, r.size)
			}
		}
		if w.hot && first != r.cache && lab.Mix64(uint64(i)+lab.Golden64)%hotOneIn == 0 {
			hot[r.cache].put(object{r.key, r.size}, true, ignore, ignore)
		}
	}
	return o, nil
}

// owners returns the n caches of the highest hashes of cache and key, the highest first.
func (c *Cluster) owners(key uint32, n int) (all []int) {
	for range n {
		owner, highest := 0, uint64(0)
		for at := range c.caches {
			if h := lab.Mix64(uint64(c.keys[key]) ^ lab.Mix64(uint64(at)+lab.Golden64)); h >= highest && !slices.Contains(all, at) {
				owner, highest = at, h
			}
		}
		all = append(all, owner)
	}
	return all
}
