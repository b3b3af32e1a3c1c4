package main

import (
	"hash/fnv"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/workload"
)

// A request is a request to one cache.
type request struct {
	time  float64
	cache int
	key   uint32
	size  int64
}

// assign numbers the objects of a trace and assigns each request to a cache: all requests of a
// client to the same one, and those of unknown clients in runs of 20 to 50, like sessions.
func (c *cluster) assign(t *workload.Trace, job *Job) {
	rng, seed := job.Rand(9), mix64(job.Seed)
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
			at = int(high(mix64(h.Sum64()), uint64(c.caches)))
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

// An object is a copy in a cache. The size stands for its version, as in the
// evaluation of Summary Cache: a request for another size means that it changed.
type object struct {
	key  uint32
	size int64
}

// fresh reports whether the copy is valid for a request of that size.
func (o object) fresh(size int64) bool { return o.size == size || size == 0 || o.size == 0 }
