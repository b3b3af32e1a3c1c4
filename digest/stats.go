package digest

// The statistics of a filter. Each takes the locks of all shards in turn, which takes
// microseconds.

// Len returns how many keys were added and not removed.
func (c *CountingFilter) Len() int {
	n := 0
	for s := range c.now().locked {
		n += int(s.keys)
	}
	return max(0, n)
}

// Changed returns how many positions differ from the last frozen filter: the
// length of the delta that Advance would make now.
func (c *CountingFilter) Changed() (n int) {
	for s := range c.now().locked {
		n += int(s.differing)
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
