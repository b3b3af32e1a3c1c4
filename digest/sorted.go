package digest

import "math/bits"

// A sortedSet holds ascending positions in [0, universe) in close to the fewest
// bits that allow a lookup in constant time: Elias-Fano coding. Each position is
// cut in two. The low halves lie side by side; the high halves, which ascend, are
// written in unary, so that bucket b (all positions with high half b) is the run
// of ones before the b-th zero. With the cut at log2(universe/count) that takes
// log2(universe/count)+2 to +3 bits a position less the fraction, and the
// directory an eighth to a half bit more.
//
// It answers Mitzenmacher's remark that a sparse filter need not be an array
// (section III-A) with a direct address in place of interpolation search.
type sortedSet struct {
	universe uint64
	count    uint64
	shift    uint     // number of low bits
	low      []uint64 // count fields of shift bits, and two words of padding
	high     []uint64 // bit p>>shift + i is one for the i-th position p; and a word of padding
	starts   []uint32 // first bit in high of every strideBuckets-th bucket
}

// strideBuckets is how many buckets share one directory entry.
const strideBuckets = 128

// maxSorted bounds count so that the directory's 32 bits suffice.
const maxSorted = 1 << 30

// sortedShape returns the cut and the number of buckets for a set: that which
// takes the fewest bits, one near log2(universe/count).
func sortedShape(universe, count uint64) (shift uint, buckets uint64) {
	if ratio := universe / max(count, 1); ratio > 1 {
		shift = uint(bits.Len64(ratio)) - 1
	}
	buckets = (universe-1)>>shift + 1
	// One low bit more for each position halves the buckets.
	if half := (universe-1)>>(shift+1) + 1; count < bucketBits(buckets)-bucketBits(half) {
		return shift + 1, half
	}
	return shift, buckets
}

// bucketBits is what buckets take, beside the positions in them.
func bucketBits(buckets uint64) uint64 { return buckets + buckets*32/strideBuckets }

// sortedBytes is what a set will take in memory.
func sortedBytes(universe, count uint64) uint64 {
	shift, buckets := sortedShape(universe, count)
	return 8*((count*uint64(shift)+63)/64+2) + 8*((count+buckets+63)/64+1) + 4*((buckets-1)/strideBuckets+1)
}

func (s *sortedSet) bytes() int {
	return 8*len(s.low) + 8*len(s.high) + 4*len(s.starts)
}

// contains reports whether p, which must be below the universe, is in the set.
func (s *sortedSet) contains(p uint64) bool { return s.bucketHas(s.start(p>>s.shift), p) }

// containsAll reports whether all positions are in the set. All buckets are found
// before any is looked into, so that the processor waits for memory once.
func (s *sortedSet) containsAll(positions []uint64) bool {
	var at [MaxHashes]uint64
	for i, p := range positions {
		at[i] = s.start(p >> s.shift)
	}
	for i, p := range positions {
		if !s.bucketHas(at[i], p) {
			return false
		}
	}
	return true
}

// bucketHas reports whether p is in its bucket, which begins at bit at of high.
func (s *sortedSet) bucketHas(at, p uint64) bool {
	bucket := p >> s.shift
	want := p & (1<<s.shift - 1)
	// The length of the run first, and not bit by bit: whether there is one more
	// cannot be foretold.
	for {
		run := uint64(bits.TrailingZeros64(^bitsAt(s.high, at)))
		first := at - bucket
		for rank := first; rank < first+run; rank++ {
			if s.lowAt(rank) == want {
				return true
			}
		}
		if run < 64 {
			return false
		}
		at += run
	}
}

// find returns how many positions are below p, and whether p is one.
func (s *sortedSet) find(p uint64) (rank uint64, found bool) {
	bucket := p >> s.shift
	at := s.start(bucket)
	rank = at - bucket
	want := p & (1<<s.shift - 1)
	for s.high[at>>6]>>(at&63)&1 != 0 {
		if low := s.lowAt(rank); low >= want {
			return rank, low == want
		}
		at++
		rank++
	}
	return rank, false
}

// start returns the first bit of a bucket in high: what follows the zeros of the
// buckets before it, counted from the directory's entry on.
func (s *sortedSet) start(bucket uint64) uint64 {
	at := uint64(s.starts[bucket/strideBuckets])
	skip := uint64(bucket % strideBuckets)
	if skip == 0 {
		return at
	}
	w := at >> 6
	zeros := ^s.high[w] &^ (1<<(at&63) - 1)
	for {
		n := uint64(bits.OnesCount64(zeros))
		if n >= skip {
			return w<<6 + selectBit(zeros, skip-1) + 1
		}
		skip -= n
		w++
		zeros = ^s.high[w]
	}
}

func (s *sortedSet) lowAt(i uint64) uint64 {
	return bitsAt(s.low, i*uint64(s.shift)) & (1<<s.shift - 1)
}

// selectBit returns the place of the one with n ones below it in word. It does not
// branch on the word (Vigna, Broadword implementation of rank/select queries,
// 2008): the ones up to the end of each byte, counted all at once; which bytes end
// too early; and the rest by a table.
func selectBit(word, n uint64) uint64 {
	const each = 0x0101010101010101
	counts := word - word>>1&(0x55*each)
	counts = counts&(0x33*each) + counts>>2&(0x33*each)
	counts = (counts + counts>>4) & (0x0f * each) * each
	early := (n*each | 0x80*each) - counts
	place := uint64(bits.OnesCount64(early&(0x80*each))) * 8
	n -= counts << 8 >> place & 0xff
	return place + uint64(selectInByte[n&7][word>>place&0xff])
}

// selectInByte[n][b] is the place of the one with n ones below it in b.
var selectInByte = func() (places [8][256]uint8) {
	for b := range 256 {
		n := 0
		for place := range 8 {
			if b>>place&1 != 0 {
				places[n][b] = uint8(place)
				n++
			}
		}
	}
	return places
}()

// A sortedBuilder takes exactly count ascending positions.
type sortedBuilder struct {
	set     *sortedSet
	next    uint64 // index of the position to come
	buckets uint64 // bucket starts already in the directory, in strides
	pending uint64 // low bits not yet stored
	fill    uint   // their number
	word    int    // where they go
}

func newSortedBuilder(universe, count uint64) *sortedBuilder {
	return &sortedBuilder{set: newSortedSet(universe, count)}
}

// newSortedSet returns a set with room for count positions and none in it.
func newSortedSet(universe, count uint64) *sortedSet {
	shift, buckets := sortedShape(universe, count)
	return &sortedSet{
		universe: universe,
		count:    count,
		shift:    shift,
		low:      make([]uint64, (count*uint64(shift)+63)/64+2),
		high:     make([]uint64, (count+buckets+63)/64+1),
		starts:   make([]uint32, (buckets-1)/strideBuckets+1),
	}
}

func (b *sortedBuilder) add(p uint64) {
	s := b.set
	bucket := p >> s.shift
	for b.buckets*strideBuckets <= bucket {
		s.starts[b.buckets] = uint32(b.buckets*strideBuckets + b.next)
		b.buckets++
	}
	at := bucket + b.next
	s.high[at>>6] |= 1 << (at & 63)
	b.next++

	low := p & (1<<s.shift - 1)
	b.pending |= low << b.fill
	b.fill += s.shift
	if b.fill >= 64 {
		s.low[b.word] = b.pending
		b.word++
		b.fill -= 64
		b.pending = low >> (s.shift - b.fill)
	}
}

func (b *sortedBuilder) finish() *sortedSet {
	s := b.set
	s.low[b.word] = b.pending
	for ; b.buckets < uint64(len(s.starts)); b.buckets++ {
		s.starts[b.buckets] = uint32(b.buckets*strideBuckets + b.next)
	}
	return s
}
