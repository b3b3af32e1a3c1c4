package digest

// A place is where a position stands in a sortedSet, or would: how many are below
// it, and in the low bit whether it is there.
type place uint64

func (s *sortedSet) place(p uint64) place {
	rank, found := s.find(p)
	if found {
		return place(rank<<1 | 1)
	}
	return place(rank << 1)
}

func (p place) rank() uint64 { return uint64(p) >> 1 }
func (p place) found() bool  { return p&1 != 0 }

// flip returns the set of count positions that differs from s by flips, which
// stand at places. Between two flips both halves of the set are copied as they
// are, shifted by as many entries as came before; that takes a fraction of a
// nanosecond a position.
func (s *sortedSet) flip(flips []uint64, places []place, count uint64) *sortedSet {
	if shift, _ := sortedShape(s.universe, count); shift != s.shift {
		return s.reshape(flips, places, count)
	}
	out := newSortedSet(s.universe, count)
	width := uint64(s.shift)
	var index, mark uint64   // entries and bits of high that were read
	var next, written uint64 // and written
	stride := 0
	for i, p := range flips {
		bucket, rank := p>>s.shift, places[i].rank()
		for ; stride < len(out.starts) && uint64(stride)*strideBuckets <= bucket; stride++ {
			out.starts[stride] = s.starts[stride] + uint32(next) - uint32(index)
		}
		until := bucket + rank
		copyBits(out.low, next*width, s.low, index*width, (rank-index)*width)
		copyBits(out.high, written, s.high, mark, until-mark)
		next += rank - index
		written += until - mark
		index, mark = rank, until
		if places[i].found() {
			index++
			mark++
			continue
		}
		putBits(out.low, next*width, p&(1<<width-1))
		out.high[written>>6] |= 1 << (written & 63)
		next++
		written++
	}
	for ; stride < len(out.starts); stride++ {
		out.starts[stride] = s.starts[stride] + uint32(next) - uint32(index)
	}
	copyBits(out.low, next*width, s.low, index*width, (s.count-index)*width)
	_, buckets := sortedShape(s.universe, s.count)
	copyBits(out.high, written, s.high, mark, s.count+buckets-mark)
	return out
}

// putBits writes a value whose bits are zero in dst.
func putBits(dst []uint64, at, value uint64) {
	dst[at>>6] |= value << (at & 63)
	dst[at>>6+1] |= value >> 1 >> (63 - at&63)
}

// reshape is flip for a count that wants another cut between the halves.
func (s *sortedSet) reshape(flips []uint64, places []place, count uint64) *sortedSet {
	b := newSortedBuilder(s.universe, count)
	c := cursor{words: s.high, word: s.high[0], set: s}
	copyTo := func(rank uint64) {
		for c.index < rank {
			p, _ := c.next()
			b.add(p)
		}
	}
	for i, p := range flips {
		copyTo(places[i].rank())
		if places[i].found() {
			c.next()
		} else {
			b.add(p)
		}
	}
	copyTo(s.count)
	return b.finish()
}
