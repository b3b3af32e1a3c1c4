package digest

import (
	"encoding/binary"
	"iter"
)

// AppendTo freezes the contents, like [CountingFilter.Advance], and appends them with their
// counts. A cache can save this and start warm from it. Counts are written as sets within sets:
// the positions with at least one key, which of these have at least two, which of those at
// least three, and so on. Each set is coded to its entropy, and so is the whole (Mitzenmacher,
// section V).
func (c *CountingFilter) AppendTo(dst []byte) []byte {
	c.freezing.Lock()
	defer c.freezing.Unlock()
	base := c.current.Load()
	counters := c.now()
	now := counters.collect(base, true)
	f := base
	if now.delta.Len() > 0 {
		f = now.delta.flip(base)
		c.current.Store(f)
	}
	start := len(dst)
	h := f.header(KindCounting)
	h.Keys = now.keys
	dst = appendHeader(dst, h)
	dst = binary.LittleEndian.AppendUint64(dst, now.sum)
	dst = f.positionSet().appendSection(dst)
	return seal(appendLevels(dst, now.counts), start)
}

// appendLevels appends the counts of a filter's positions, given in ascending order of the
// positions. For each level from 2 on it writes how many positions of the level below are also
// on this level, and which ones. A zero ends the levels.
func appendLevels(dst []byte, counts []uint8) []byte {
	var ranks []uint64
	for level := uint8(2); level <= maxCount; level++ {
		ranks = ranks[:0]
		rank := uint64(0)
		for _, n := range counts {
			if n >= level {
				ranks = append(ranks, rank)
			}
			if n >= level-1 {
				rank++
			}
		}
		dst = binary.AppendUvarint(dst, uint64(len(ranks)))
		if len(ranks) == 0 {
			break
		}
		dst = listed(rank, ranks).appendSection(dst)
	}
	return dst
}

// DecodeCountingFilter reads what [CountingFilter.AppendTo] wrote. The last frozen version is
// the one that was saved. The caller must make sure that the cache still holds the same keys:
// see [CountingFilter.Verify].
func DecodeCountingFilter(b []byte, lim Limits) (*CountingFilter, error) {
	lim = lim.withDefaults()
	r := start(b, lim)
	kindAt := r.off
	h := r.header(lim)
	if r.err == nil && h.Kind != KindCounting {
		r.corrupt("kind", kindAt, "%v is no counting filter", h.Kind)
	}
	r.afford(lim, "count", h.countAt, 32*h.Ones) // at worst: a list of positions, a filter, counts and tables
	sum := r.u64("key sum")
	f := r.filterBody(h, lim)
	counts := r.levels(h.Ones)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return restore(f, counts, stock{int64(h.Keys), sum}), nil
}

// Verify reports whether the filter holds exactly the keys that seq yields, each as often as it
// was added. It compares two sums of 64 bits, which are equal by chance once in 2^64 times.
// Call it after loading a saved filter, before trusting the filter. If it returns false, fill a new
// one. While keys are added or removed, the result means nothing.
func (c *CountingFilter) Verify(seq iter.Seq[Key]) bool {
	var want stock
	for k := range seq {
		want.keys++
		want.sum += sumOf(k)
	}
	return c.now().stock() == want
}

func (r *reader) levels(ones uint64) []uint8 {
	if r.err != nil {
		return nil
	}
	counts := make([]uint8, ones)
	for i := range counts {
		counts[i] = 1
	}
	below := ones
	for level := uint8(2); level <= maxCount; level++ {
		n := r.bounded("level count", 0, below)
		if n == 0 {
			break
		}
		ranks := r.ranks("level", below, n)
		if r.err != nil {
			return nil
		}
		rank := uint64(0)
		for i := range counts {
			if counts[i] != level-1 {
				continue
			}
			if len(ranks) > 0 && ranks[0] == rank {
				counts[i] = level
				ranks = ranks[1:]
			}
			rank++
		}
		below = n
	}
	return counts
}

// restore makes a counting filter from a frozen filter and the counts of its positions.
func restore(f *Filter, counts []uint8, held stock) *CountingFilter {
	fresh := newCounters(f.geometry)
	fresh.inherited = held
	for p := range f.Positions() {
		s, rel := fresh.at(p)
		s.load(fresh, rel, counts[0])
		counts = counts[1:]
	}
	c := new(CountingFilter)
	c.counters.Store(fresh)
	c.current.Store(f)
	return c
}

// load adds the counter of a frozen position to a shard that does not have it yet.
func (s *shard) load(c *counters, rel uint32, count uint8) {
	if count == maxCount {
		s.saturated++
	}
	for ; !s.isArray; s.grow(c) {
		if s.enter(c, c.scatter(rel), slotFrozen|uint32(count)) {
			return
		}
	}
	s.arrayLoad(rel, uint32(count), false)
}

// counted appends the positions of a shard that have a count, in no order: each as rel<<4 with
// the count in the low bits.
func (s *shard) counted(c *counters, dst []uint32) []uint32 {
	if s.isArray {
		for i, word := range s.words() {
			for shift := uint(0); word&^changedMask != 0 && shift < fieldBits*fieldsPerWord; shift += fieldBits {
				if n := word >> shift & maxCount; n != 0 {
					dst = append(dst, uint32(i*fieldsPerWord+int(shift/fieldBits))<<4|n)
				}
			}
		}
		return dst
	}
	for h, state := range s.all(c) {
		if n := state & slotCount; n != 0 {
			dst = append(dst, c.gather(h)<<4|n)
		}
	}
	return dst
}
