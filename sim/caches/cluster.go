// Package caches simulates caches that cooperate in many ways: it replays a trace of requests over them, and counts
// hits, messages and bytes. It opens no socket. Start from [New]; [Cluster.Ways] lists the ways. Nothing expires: an
// object changes when its size does.
package caches

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
	"github.com/summarycache/summarycache/sim/workload"
)

// Outcomes count how the requests were answered with one way of cooperating.
type Outcomes struct {
	Local, Remote, FalseHits, Stale, Missed int
	RoundTrips                              int // before an answer, except the one to the origin
	Queries, QueryBytes                     int
	Updates, UpdateBytes                    int
	Moved                                   int   // bodies from one cache to another
	MovedBytes, FetchedBytes                int64 // of these, and of bodies from the origin
	// bytes of bodies that left a zone, or bodies if their sizes are unknown
	Crossed int64
	Memory  int // bytes per cache for what it knows of the others, at the end
}

// A Cluster has what all ways of cooperating share: caches, and a trace of requests to them. It is safe for concurrent
// use.
type Cluster struct {
	Sized    bool // the trace has sizes
	caches   int
	limit    int64
	sliced   bool
	requests []request
	keys     []digest.Key // of the requested objects
	names    []string     // of these; the origin sends each at least once
	most     int          // objects in the fullest cache, without cooperation; at least 1
}

// A request is a request to one cache.
type request struct {
	time  float64
	cache int
	key   uint32
	size  int64
}

// assign numbers the objects of a trace and assigns each request to a cache: all requests of a
// client to the same one, and those of unknown clients in runs of 20 to 50, like sessions.
func (c *Cluster) assign(t *workload.Trace, seed uint64) {
	rng, seed := rand.New(rand.NewPCG(seed, 9)), lab.Mix64(seed)
	numbers := make(map[string]uint32, len(t.Sizes))
	run, cache := 0, 0
	for _, r := range t.Requests {
		key, known := numbers[r.Key]
		if !known {
			key = uint32(len(numbers))
			numbers[r.Key] = key
			c.names, c.keys = append(c.names, r.Key), append(c.keys, digest.KeyOfString(seed, r.Key))
		}
		at := cache
		if r.Client != workload.Anonymous {
			h := fnv.New64a()
			h.Write([]byte(r.Client))
			at = int(lab.High(lab.Mix64(h.Sum64()), uint64(c.caches)))
		} else if run--; run < 0 {
			run, cache = 19+rng.IntN(31), rng.IntN(c.caches)
			at = cache
		}
		c.requests = append(c.requests, request{time: r.Seconds, cache: at, key: key, size: r.Size})
	}
}

// Options describe the caches of a cluster.
type Options struct {
	Caches int
	Limit  int64  // bytes of each, or objects if the trace has no sizes; at least 1
	Sliced bool   // objects from 8 MiB on are kept in slices, as by a peer: one may take all, and not a quarter
	Seed   uint64 // of what is random
}

// New makes a cluster.
func New(t *workload.Trace, o Options) *Cluster {
	c := &Cluster{caches: o.Caches, limit: max(1, o.Limit), sliced: o.Sliced, Sized: t.Bytes() > 0, most: 1}
	c.assign(t, o.Seed)
	nodes := c.empty(1)
	ignore := func(uint32) {}
	for _, r := range c.requests {
		node := nodes[r.cache]
		if held, ok := node.get(r.key); !ok || !held.fresh(r.size) {
			node.put(object{r.key, r.size}, false, ignore, ignore)
		}
		c.most = max(c.most, node.len())
	}
	return c
}

// Weight is the size of a cache that holds all objects of a trace.
func Weight(t *workload.Trace) (sum int64) {
	for _, size := range t.Sizes {
		sum += weigh(size)
	}
	return sum
}

// Requests returns the number of requests.
func (c *Cluster) Requests() int { return len(c.requests) }

// Objects returns the number of different objects that are requested.
func (c *Cluster) Objects() int { return len(c.names) }

// Seconds returns the time from the first request to the last.
func (c *Cluster) Seconds() float64 { return c.requests[len(c.requests)-1].time - c.requests[0].time }

// membershipBytes is the cost of membership per cache and second, with headers, in a
// cluster of so many: a line through the measurements of TestIdleBytes of package gossip.
func membershipBytes(caches int) float64 { return 147 + 0.72*float64(caches) }

// datagramHeaders are the headers of IPv4 and UDP, in bytes. Messages over TCP have more, which
// is the same for all ways.
const datagramHeaders = 28

// MessageBytes returns the bytes of all messages between caches, with headers, and of these with membership.
func (c *Cluster) MessageBytes(w Way, o Outcomes) (wire, all float64) {
	wire = float64(o.QueryBytes + o.UpdateBytes + datagramHeaders*(o.Queries+o.Updates))
	if all = wire; w.Gossip {
		all += membershipBytes(c.caches) * float64(c.caches) * c.Seconds() / w.Speed()
	}
	return wire, all
}

// zones is into how many zones the caches are divided, by turns.
const zones = 3

// moves counts a body that one cache sends to another.
func (o *Outcomes) moves(from, to int, size int64) {
	o.Moved++
	o.MovedBytes += size
	if from%zones != to%zones {
		o.Crossed += weigh(size)
	}
}

// empty returns empty caches, each of a share of the full size.
func (c *Cluster) empty(share float64) []copies {
	nodes := make([]copies, c.caches)
	for i := range nodes {
		nodes[i] = newLRU(max(1, int64(share*float64(c.limit))), c.sliced)
	}
	return nodes
}

// Size says how large each cache is.
func (c *Cluster) Size() string {
	if c.Sized {
		return fmt.Sprintf("%.4g MB", float64(c.limit)/1e6)
	}
	return fmt.Sprintf("%d objects", c.limit)
}

// updateHeader is the size in bytes of any update without its entries or bits, as in the
// short datagram with a running peer's change.
const updateHeader = 16
