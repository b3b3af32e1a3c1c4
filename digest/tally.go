package digest

// A Tally is what a [CountingFilter] counts about itself.
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
	for i := range counters.shards {
		s := &counters.shards[i]
		s.mu.Lock()
		t.Keys += s.keys
		t.Changed += s.changed()
		t.Saturated += s.saturated
		t.Refused += s.refused
		s.mu.Unlock()
	}
	t.Keys = max(0, t.Keys)
	return t
}

// Len returns how many keys were added and not removed.
func (c *CountingFilter) Len() int { return c.Tally().Keys }

// Changed returns how many positions differ from the last frozen filter: the
// length of the delta that Advance would make now.
func (c *CountingFilter) Changed() int { return c.Tally().Changed }
