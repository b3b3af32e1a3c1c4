package main

import (
	"hash/fnv"
	"math/rand/v2"
)

// A dealt request is one that has come to a cache.
type dealt struct {
	time  float64
	cache int
	key   uint32
	size  int64
}

// deal gives every request to one of n caches: all of a client's to the same
// one, and requests without a client in runs of 20 to 50, like sessions.
func deal(t *trace, n int, rng *rand.Rand) []dealt {
	out := make([]dealt, len(t.requests))
	run, cache := 0, 0
	for i, r := range t.requests {
		out[i] = dealt{time: r.time, key: r.key, size: r.size}
		if r.client != "-" {
			h := fnv.New64a()
			h.Write([]byte(r.client))
			out[i].cache = int(high(mix64(h.Sum64()), uint64(n)))
			continue
		}
		if run == 0 {
			run, cache = 20+rng.IntN(31), rng.IntN(n)
		}
		run--
		out[i].cache = cache
	}
	return out
}

// An object is a copy in a cache. The size stands for its version, as in the
// evaluation of Summary Cache: a request for another size means that it changed.
type object struct {
	key  uint32
	size int64
}

// fresh reports whether the copy is what a request of that size wants.
func (o object) fresh(size int64) bool { return o.size == size || size == 0 || o.size == 0 }
