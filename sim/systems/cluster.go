package systems

import (
	"fmt"
	"hash/fnv"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
	"github.com/summarycache/summarycache/sim/workload"
)

type systemsOptions struct {
	caches   int
	capacity float64
	skip     bool

	generate bool
	model    workload.Model
}

// outcomes count how the requests were answered with one way of cooperating.
type outcomes struct {
	local, remote, falseHits, stale, missed int
	roundTrips                              int // before an answer, except the one to the origin
	queries, queryBytes                     int
	updates, updateBytes                    int
	moved                                   int   // bodies from one cache to another
	crossed                                 int64 // bytes of these that left a zone, or bodies if their sizes are unknown
	memory                                  int   // bytes per cache for what it knows of the others, at the end
}

// A cluster has what all ways of cooperating share.
type cluster struct {
	caches   int
	limit    int64
	requests []request
	keys     []digest.Key // of the requested objects
	names    []string     // of these; the origin sends each at least once
	sized    bool
	most     int // objects in the fullest cache, without cooperation; at least 1
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
func (c *cluster) assign(t *workload.Trace, job *lab.Job) {
	rng, seed := job.Rand(9), lab.Mix64(job.Seed)
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

// untimed reports whether the times of a trace are only the numbers of its requests.
func untimed(t *workload.Trace) bool {
	for i, r := range t.Requests {
		if r.Seconds-t.Requests[0].Seconds != float64(i) {
			return false
		}
	}
	return len(t.Requests) > 1
}

func newCluster(t *workload.Trace, o *systemsOptions, job *lab.Job) *cluster {
	c := &cluster{caches: o.caches, sized: t.Bytes() > 0, most: 1}
	c.assign(t, job)
	total := int64(0)
	for _, size := range t.Sizes {
		total += weigh(size)
	}
	c.limit = max(1, int64(o.capacity*float64(total)))
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

// zones is into how many zones the caches are divided, by turns.
const zones = 3

// moves counts a body that one cache sends to another.
func (o *outcomes) moves(from, to int, size int64) {
	o.moved++
	if from%zones != to%zones {
		o.crossed += weigh(size)
	}
}

// empty returns empty caches, each of a share of the full size.
func (c *cluster) empty(share float64) []copies {
	nodes := make([]copies, c.caches)
	for i := range nodes {
		nodes[i] = newLRU(max(1, int64(share*float64(c.limit))))
	}
	return nodes
}

func (c *cluster) size() string {
	if c.sized {
		return fmt.Sprintf("%.4g MB", float64(c.limit)/1e6)
	}
	return fmt.Sprintf("%d objects", c.limit)
}

// updateHeader is the size in bytes of any update without its entries or bits, as in the
// short datagram with a running peer's change.
const updateHeader = 16
