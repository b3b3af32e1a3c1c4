package digest

import "unsafe"

// The statistics of a filter. Each takes the locks of all shards in turn, which takes
// microseconds.

// Len returns how many keys were added and not removed.
func (c *CountingFilter) Len() int { return max(0, int(c.now().stock().keys)) }

// Changed returns how many positions differ from the last frozen filter: the
// length of the delta that Advance would make now.
func (c *CountingFilter) Changed() (n int) {
	for s := range c.now().locked {
		n += int(s.differing)
	}
	return n
}

// Saturated returns how many counters are stuck at 15 until the next [Set.Rebuild].
func (c *CountingFilter) Saturated() (n int) {
	for s := range c.now().locked {
		n += int(s.saturated)
	}
	return n
}

// A stock is a number of keys, and the sum of sumOf over them.
type stock struct {
	keys int64
	sum  uint64
}

func sumOf(k Key) uint64 { return mix(uint64(k) + golden) }

func (c *counters) stock() stock {
	total := c.inherited
	for s := range c.locked {
		total.keys += int64(s.keys)
		total.sum += s.sum
	}
	return total
}

// MemoryBytes returns the memory of the counters, without that of the frozen filter.
func (c *CountingFilter) MemoryBytes() int {
	counters := c.now()
	n := 0
	for s := range counters.locked {
		n += int(unsafe.Sizeof(*s)) + 4*int(s.size)
	}
	return n
}

// locked yields each shard in turn, locked.
func (c *counters) locked(yield func(*shard) bool) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		more := yield(s)
		s.mu.Unlock()
		if !more {
			return
		}
	}
}
