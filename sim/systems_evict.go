package main

import (
	"container/list"
	"math"

	"github.com/maypok86/otter/v2"
)

// A copies is the contents of one cache of bounded weight, with its rule of what
// leaves first.
type copies interface {
	// get returns the copy and takes it for wanted; peek does not.
	get(key uint32) (object, bool)
	peek(key uint32) (object, bool)
	// put stores a copy and tells of every key that came or left: perhaps the same
	// one. It returns false for what is larger than the cache, which is not stored.
	put(o object, came, left func(uint32)) bool
	len() int
}

// evictions are the rules by the names of --evict.
var evictions = map[string]func(limit int64) copies{
	"lru":   func(limit int64) copies { return newLRU(limit) },
	"otter": func(limit int64) copies { return newTiny(limit) },
}

// weigh is what an object takes of a cache: its bytes, or 1 where those are not
// known.
func weigh(size int64) int64 { return max(1, size) }

// An lru is a cache of bounded weight that evicts what was not asked for longest.
type lru struct {
	limit, weight int64
	order         list.List // of object, newest first
	at            map[uint32]*list.Element
}

func newLRU(limit int64) *lru { return &lru{limit: limit, at: map[uint32]*list.Element{}} }

func (c *lru) peek(key uint32) (object, bool) {
	e, held := c.at[key]
	if !held {
		return object{}, false
	}
	return e.Value.(object), true
}

func (c *lru) get(key uint32) (object, bool) {
	e, held := c.at[key]
	if !held {
		return object{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(object), true
}

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

func (c *lru) len() int { return len(c.at) }

// A tiny is a cache that evicts by otter's W-TinyLFU, which may turn an object
// away at once for one that was asked for more often. Otter hashes with a seed of
// its own in every process, so that equal runs differ a little.
type tiny struct {
	limit int64
	cache *otter.Cache[uint32, object]
	gone  []uint32 // evicted by the call under way
}

func newTiny(limit int64) *tiny {
	c := &tiny{limit: limit}
	c.cache = otter.Must(&otter.Options[uint32, object]{
		MaximumWeight: uint64(limit),
		Weigher:       func(_ uint32, o object) uint32 { return uint32(min(weigh(o.size), math.MaxUint32)) },
		Executor:      func(run func()) { run() }, // in order, and done when the call returns
		OnDeletion: func(e otter.DeletionEvent[uint32, object]) {
			if e.WasEvicted() {
				c.gone = append(c.gone, e.Key)
			}
		},
	})
	return c
}

func (c *tiny) get(key uint32) (object, bool) { return c.cache.GetIfPresent(key) }

func (c *tiny) peek(key uint32) (object, bool) {
	e, held := c.cache.GetEntryQuietly(key)
	return e.Value, held
}

func (c *tiny) put(o object, came, left func(uint32)) bool {
	if weigh(o.size) > c.limit {
		return false
	}
	if _, fresh := c.cache.Set(o.key, o); fresh {
		came(o.key)
	}
	c.cache.CleanUp()
	for _, key := range c.gone {
		left(key)
	}
	c.gone = c.gone[:0]
	return true
}

func (c *tiny) len() int { return c.cache.EstimatedSize() }
