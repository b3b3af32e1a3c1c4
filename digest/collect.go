package digest

import (
	"math/bits"
	"slices"
)

// collect takes from every shard that was written the positions that changed since base was frozen. It returns
// the delta from base to the present contents. One collect runs at a time.
func (c *counters) collect(base *Filter) *Delta {
	d := base.delta()
	var few [512]uint32
	found := few[:0] // changes of all shards, one shard after the other
	var fewEnds [128]shardEnd
	ends := fewEnds[:0]
	for w := range c.written {
		if c.written[w].Load() == 0 { // reading alone takes nothing from a writer's processor
			continue
		}
		// A writer that comes after this marks its shard again, at worst for nothing.
		for written := c.written[w].Swap(0); written != 0; written &= written - 1 {
			i := w<<6 + bits.TrailingZeros64(written)
			s := &c.shards[i]
			s.mu.Lock()
			s.written = false
			found = s.drain(c, found)
			c.frozenKeys += int(s.keys - s.frozenKeys)
			s.frozenKeys = s.keys
			s.mu.Unlock()
			ends = append(ends, shardEnd{uint32(i), uint32(len(found))})
		}
	}
	d.flips = make([]uint64, 0, len(found))
	from := uint32(0)
	for _, e := range ends {
		some := found[from:e.end]
		from = e.end
		slices.Sort(some)
		d.take(some, uint64(e.shard)<<c.spanBits)
	}
	if len(d.flips) > 0 {
		d.keys = uint64(max(0, c.frozenKeys))
		d.target.Sequence++
	}
	return d
}

// A shardEnd is where the changes of a shard end.
type shardEnd struct{ shard, end uint32 }

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
