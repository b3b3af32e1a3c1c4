package digest

import "slices"

// collected is what counters.collect gathers from all shards.
type collected struct {
	delta  *Delta  // from the last frozen filter to the present contents
	keys   uint64  // held now
	sum    uint64  // of sumOf over the keys
	counts []uint8 // of the set positions, in ascending order; nil unless requested
}

// collect takes from every shard the positions that changed since base was frozen.
func (c *counters) collect(base *Filter, withCounts bool) collected {
	d := base.delta()
	out := collected{delta: d, sum: c.inherited.sum}
	keys := c.inherited.keys
	var few [512]uint32
	found := few[:0]                        // changes of all shards, one shard after the other
	ends := make([]uint32, len(c.shards)+1) // where those of each shard end
	var counted []uint32
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		found = s.drain(c, found)
		if withCounts {
			counted = s.counted(c, counted[:0])
		}
		keys += int64(s.keys)
		out.sum += s.sum
		s.mu.Unlock()

		ends[i+1] = uint32(len(found))
		slices.Sort(counted)
		for _, entry := range counted {
			out.counts = append(out.counts, uint8(entry&maxCount))
		}
	}
	d.flips = make([]uint64, 0, len(found))
	for i := range c.shards {
		some := found[ends[i]:ends[i+1]]
		slices.Sort(some)
		d.take(some, uint64(i)<<c.spanBits)
	}
	out.keys = uint64(max(0, keys))
	if len(d.flips) > 0 {
		d.keys = out.keys
		d.target.Sequence++
	}
	return out
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
