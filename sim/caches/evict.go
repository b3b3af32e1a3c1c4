package caches

import "container/list"

// copies is the contents of one cache of bounded weight.
type copies interface {
	// get returns the copy and counts as a request for it; peek does not count.
	get(key uint32) (object, bool)
	peek(key uint32) (object, bool)
	// put stores an object. copy says that it is a copy of another cache's object. It calls
	// came and left for every key that was added or removed; these may be the same key. It
	// returns false for an object that is too large to be stored.
	put(o object, copy bool, came, left func(uint32)) bool
	// drop removes a key, if it is there, and then calls left.
	drop(key uint32, left func(uint32))
	len() int
	weight() int64 // of all
}

// largestShare limits an object to a quarter of a cache, as in a peer's store.
const largestShare = 4

// slicedFrom is the size from which objects are kept in slices, as [Options] say.
const slicedFrom = 8 << 20

// Fits reports whether a cache of limit stores an object of that size.
func Fits(size, limit int64, sliced bool) bool {
	return size <= limit/largestShare || sliced && size >= slicedFrom && size <= limit
}

// weigh is the weight of an object in a cache: its bytes, or 1 if they are unknown.
func weigh(size int64) int64 { return max(1, size) }

// An lru is a cache of bounded weight that evicts the least recently used object.
type lru struct {
	limit, all int64
	sliced     bool
	order      list.List // of object, newest first
	at         map[uint32]*list.Element
}

func newLRU(limit int64, sliced bool) *lru {
	return &lru{limit: limit, sliced: sliced, at: map[uint32]*list.Element{}}
}

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

func (c *lru) put(o object, _ bool, came, left func(uint32)) bool {
	if !Fits(weigh(o.size), c.limit, c.sliced) {
		return false
	}
	if e, held := c.at[o.key]; held {
		c.all += weigh(o.size) - weigh(e.Value.(object).size)
		e.Value = o
		c.order.MoveToFront(e)
	} else {
		c.at[o.key] = c.order.PushFront(o)
		c.all += weigh(o.size)
		came(o.key)
	}
	for c.all > c.limit {
		c.drop(c.order.Back().Value.(object).key, left)
	}
	return true
}

func (c *lru) drop(key uint32, left func(uint32)) {
	if e := c.at[key]; e != nil {
		c.all -= weigh(c.order.Remove(e).(object).size)
		delete(c.at, key)
		left(key)
	}
}

func (c *lru) len() int { return len(c.at) }

func (c *lru) weight() int64 { return c.all }

// An object is a copy in a cache. The size stands for its version, as in the
// evaluation of Summary Cache: a request for another size means that it changed.
type object struct {
	key  uint32
	size int64
}

// fresh reports whether the copy is valid for a request of that size.
func (o object) fresh(size int64) bool { return o.size == size || size == 0 || o.size == 0 }
