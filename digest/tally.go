package digest

import "unsafe"

// A Tally has the statistics of a [CountingFilter].
type Tally struct {
	Keys      int    // added and not removed
	Changed   int    // positions that differ from the last frozen filter
	Saturated int    // positions that are stuck at 15 until the next Rebuild
	Refused   uint64 // removals of keys that were not there, since the last Rebuild
}

// Tally sums over the shards, taking the lock of each in turn: microseconds.
func (c *CountingFilter) Tally() Tally {
	var t Tally
	counters := c.counters.Load()
	keys := counters.inherited.keys
	for s := range counters.locked {
		keys += int64(s.keys)
		t.Changed += int(s.differing)
		if s.rare != nil {
			t.Saturated += s.rare.saturated
			t.Refused += s.rare.refused
		}
	}
	t.Keys = max(0, int(keys))
	return t
}

// A stock is how many keys there are, and the sum of sumOf over them.
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
	counters := c.counters.Load()
	n := 0
	for s := range counters.locked {
		n += int(unsafe.Sizeof(*s)) + 4*int(s.size)
		if s.rare != nil {
			n += int(unsafe.Sizeof(*s.rare))
		}
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

// Len returns how many keys were added and not removed.
func (c *CountingFilter) Len() int { return max(0, int(c.counters.Load().stock().keys)) }

// Changed returns how many positions differ from the last frozen filter: the
// length of the delta that Advance would make now.
func (c *CountingFilter) Changed() int { return c.Tally().Changed }
