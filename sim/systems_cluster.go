package main

import (
	"container/list"
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

// An lru is a cache of bounded weight that evicts what was not asked for longest.
type lru struct {
	limit, weight int64
	order         list.List // of object, newest first
	at            map[uint32]*list.Element
}

func newLRU(limit int64) *lru { return &lru{limit: limit, at: map[uint32]*list.Element{}} }

// weigh is what an object takes of a cache: its bytes, or 1 where those are not
// known.
func weigh(size int64) int64 { return max(1, size) }

// peek returns the copy without touching it.
func (c *lru) peek(key uint32) (object, bool) {
	e, held := c.at[key]
	if !held {
		return object{}, false
	}
	return e.Value.(object), true
}

// get returns the copy and makes it the newest.
func (c *lru) get(key uint32) (object, bool) {
	e, held := c.at[key]
	if !held {
		return object{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(object), true
}

// put stores a copy, tells of every key that left or came, and returns whether
// it was stored: what is larger than the cache is not.
func (c *lru) put(o object, came, left func(uint32)) bool {
	if weigh(o.size) > c.limit {
		return false
	}
	if e, held := c.at[o.key]; held {
		c.weight += weigh(o.size) - weigh(e.Value.(object).size)
		e.Value = o
		c.order.MoveToFront(e)
	} else {
		c.at[o.key] = c.order.PushFront(o)
		c.weight += weigh(o.size)
		came(o.key)
	}
	for c.weight > c.limit {
		e := c.order.Back()
		old := c.order.Remove(e).(object)
		delete(c.at, old.key)
		c.weight -= weigh(old.size)
		left(old.key)
	}
	return true
}
