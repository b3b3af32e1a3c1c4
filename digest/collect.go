package digest

import "slices"

// collect takes from every shard the positions that changed since base was frozen. It returns the
// delta from base to the present contents.
func (c *counters) collect(base *Filter) *Delta {
	d := base.delta()
	keys := 0
	var few [512]uint32
	found := few[:0]                        // changes of all shards, one shard after the other
	ends := make([]uint32, len(c.shards)+1) // where those of each shard end
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		found = s.drain(c, found)
		keys += int(s.keys)
		s.mu.Unlock()
		ends[i+1] = uint32(len(found))
	}
	d.flips = make([]uint64, 0, len(found))
	for i := range c.shards {
		some := found[ends[i]:ends[i+1]]
		slices.Sort(some)
		d.take(some, uint64(i)<<c.spanBits)
	}
	if len(d.flips) > 0 {
		d.keys = uint64(max(0, keys))
		d.target.Sequence++
	}
	return d
}

// take appends the changes of the shard that begins at position from.
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
