package digest

import "slices"

// collect takes from every shard what changed since base was frozen.
func (c *counters) collect(base *Filter) *Delta {
	d := &Delta{
		geometry: base.geometry,
		base:     base.version,
		target:   base.version,
		baseKeys: base.keys,
		baseOnes: base.ones,
		ones:     base.ones,
		keys:     base.keys,
	}
	keys, room := 0, 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		room += int(s.differing)
		s.mu.Unlock()
	}
	d.flips = make([]uint64, 0, room)
	var found []uint32
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		found = s.drain(c, found[:0])
		keys += int(s.keys)
		s.mu.Unlock()
		slices.Sort(found)
		d.take(found, uint64(i)<<c.spanBits)
	}
	if len(d.flips) > 0 {
		d.keys = uint64(max(0, keys))
		d.target.Sequence++
	}
	return d
}

// take appends what changed in the shard that begins at position from.
func (d *Delta) take(found []uint32, from uint64) {
	for _, change := range found {
		p := from + uint64(change>>1)
		d.flips = append(d.flips, p)
		if change&1 != 0 {
			d.target.State += stateOf(p)
			d.ones++
		} else {
			d.target.State -= stateOf(p)
			d.ones--
		}
	}
}
