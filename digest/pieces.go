package digest

import (
	"math"
	"math/bits"
	"unsafe"
)

// pieces is a set of positions in [0, m), divided into pieces of equal span. Pieces are
// immutable, and shared by all versions of a filter that agree in them: a version that
// differs in a few positions has a few pieces of its own. They are the leaves of a tree of
// a root, branches and nodes, which versions share as well.
//
// Each level counts the positions below it, so one descent converts a rank to a position, or
// a position to a rank.
type pieces struct {
	form
	root []branchRef
	held uint64 // words that the pieces take
}

// A branchRef is a branch, and how many positions are in the branches before it.
type branchRef struct {
	branch *branch
	before uint64
}

// A branch has nodes, and how many positions are in each. The last branch and the last node may
// be incomplete.
type branch struct {
	nodes [branchFan]*node
	ones  [branchFan]uint32
}

// A node has pieces, in the same way.
type node struct {
	words [nodeFan]*uint64
	ones  [nodeFan]uint32
}

// nodeFan is how many pieces share a node, and branchFan how many nodes a branch. A change
// copies a node (96 bytes) and a branch (192), and the root once. Without branches the root
// of ten million positions would take more than all pieces that 32 flips change.
const (
	nodeFan   = 8
	branchFan = 16
)

// A piece has the positions in one span. What its words mean follows from ones and the form. If
// there are no positions, words is zeroWords.
type piece struct {
	words *uint64
	ones  uint32
}

// maxPieced bounds the positions of a set that is not a bitmap, so that a node's counts fit 32
// bits even if all positions are in one piece.
const maxPieced = 1 << 30

// A form says how positions are divided and written. There are two. The pieces of a dense
// set are bitmaps. Those of a sparse set are lists by Elias and Fano: each position is cut
// in two; the low bits are side by side, in order of positions; the high parts, which
// ascend, follow in unary. So bucket b (the positions of one high part, counted from the
// piece's first) is the run of ones before the b-th zero. With the cut near log2(m/x) that
// takes log2(m/x)+2 bits a position, and a twelfth more for the nodes above the pieces and
// for what the allocator rounds up.
//
// It answers Mitzenmacher's remark that a sparse filter need not be an array
// (section III-A) with a direct address in place of interpolation search.
type form struct {
	bits       uint64 // m
	planned    uint64 // positions that it was chosen for
	buckets    uint64 // in a piece; in a bitmap, each is one position, and they are a multiple of 64
	reciprocal uint64 // of buckets
	count      uint64 // of pieces
	shift      uint   // low bits
	bitmap     bool
}

const (
	bitmapPiece = 1 << 14 // positions in a piece of a bitmap: 2 KiB
	sortedPiece = 8 * 400 // about the bits of a list's piece: some 440 bytes with what the allocator adds
	mostBuckets = 512     // in a piece of a list, since a look-up counts them
	fewPlanned  = 64      // positions for which any list is planned
)

// zeroWords are the words of a piece without positions.
var zeroWords [bitmapPiece / 64]uint64

// dense reports whether a set of ones positions in [0, bits) is better kept as a
// bitmap: that takes at most about twice the memory of a list, and lookups are several
// times as fast.
func dense(bits, ones uint64) bool { return bits <= 4096 || bits/16 <= ones }

func formFor(m, ones uint64) form {
	if dense(m, ones) {
		return bitmapForm(m, ones)
	}
	return sortedForm(m, ones)
}

func bitmapForm(m, ones uint64) form {
	l := form{bits: m, planned: ones, bitmap: true}
	l.divide(min(bitmapPiece, (m+63)/64*64))
	return l
}

// sortedForm cuts positions where lists take the fewest bits, near log2(m/ones).
func sortedForm(m, ones uint64) form {
	n := max(ones, fewPlanned)
	l := form{bits: m, planned: ones}
	l.shift = max(1, uint(bits.Len64(m/n|1))-1)
	// One more low bit for each position halves the number of buckets, so there are fewer
	// pieces.
	if buckets := (m-1)>>l.shift + 1; n < buckets/16*9 {
		l.shift++
	}
	buckets := (m-1)>>l.shift + 1
	l.divide(min(mostBuckets, max(2, uint64(piecesBuckets(float64(buckets), float64(n), l.shift)))))
	return l
}

// piecesBuckets returns how many buckets make a piece of the intended size.
func piecesBuckets(buckets, ones float64, shift uint) float64 {
	return sortedPiece * buckets / (buckets + ones*float64(shift+1))
}

func (l *form) divide(buckets uint64) {
	l.buckets = buckets
	// Rounded up, it gives exact quotients of numbers below 2^64/buckets.
	l.reciprocal = ^uint64(0)/buckets + 1
	l.count = (l.bits-1)>>l.shift/buckets + 1
}

// suits reports whether the form is good enough for a set of so many positions. With a third
// more than planned, lists take about a third of a bit a position more; another form means that
// the whole set must be rewritten.
func (l *form) suits(ones uint64) bool {
	if l.bitmap && dense(l.bits, ones) {
		return true
	}
	return ones <= l.planned+l.planned/3+fewPlanned/2 && ones+fewPlanned/2 >= l.planned-l.planned/4
}

// nodes is how many nodes there are.
func (l *form) nodes() uint64 { return (l.count-1)/nodeFan + 1 }

// at returns the piece of a position, and its bucket in the piece.
func (l *form) at(p uint64) (i, bucket uint64) {
	bucket = p >> l.shift
	i = high(bucket, l.reciprocal)
	return i, bucket - i*l.buckets
}

// span is how many positions a piece covers; the last may cover fewer.
func (l *form) span() uint64 { return l.buckets << l.shift }

// lowWords is how many words the low bits of a piece take. The high parts follow.
func (l *form) lowWords(ones uint64) uint64 { return (ones*uint64(l.shift) + 63) / 64 }

// length is how many words a piece has.
func (l *form) length(ones uint64) uint64 {
	if l.bitmap {
		return l.buckets / 64
	}
	return l.lowWords(ones) + (l.buckets+ones+63)/64
}

// bytesFor is about the memory of a set of so many positions. It grows with m.
func (l *form) bytesFor(ones uint64) uint64 {
	if l.bitmap {
		return perNode*l.nodes() + l.count*l.buckets/8
	}
	buckets := float64(l.bits) / math.Exp2(float64(l.shift))
	pieces := max(1, buckets/min(mostBuckets, piecesBuckets(buckets, float64(ones), l.shift)))
	// Both parts of a piece are rounded up to words, and then to what the allocator has.
	bits := (float64(ones)*float64(l.shift+1) + buckets + 64*pieces) * 1.043
	return uint64(bits/8+float64(perNode)*math.Ceil(pieces/nodeFan)) + 8
}

// words returns the words of a piece.
func (l *form) words(e piece) []uint64 {
	return unsafe.Slice(e.words, l.length(uint64(e.ones)))
}

// classWords is how many words the allocator provides if n are requested.
func classWords(n uint64) uint64 {
	step := classStep(n)
	return (n + step - 1) / step * step
}

// classStep is the distance between the allocator's size classes near n, in words. They are
// about a tenth apart.
func classStep(n uint64) uint64 {
	switch size := bits.Len64(n - 1); {
	case n <= 32:
		return 2
	case n <= 64:
		return 4
	default:
		return 1 << (size - 4 + int(n>>(size-2)&1))
	}
}

// perNode is the memory of a node, and its share of the branch and the root.
const perNode = uint64(unsafe.Sizeof(node{}) + (unsafe.Sizeof(branch{})+unsafe.Sizeof(branchRef{}))/branchFan)

// node returns the pointer to a node, in its branch.
func (s *pieces) node(at uint64) **node { return &s.root[at/branchFan].branch.nodes[at%branchFan] }

func (s *pieces) piece(i uint64) piece {
	n := *s.node(i / nodeFan)
	return piece{n.words[i%nodeFan], n.ones[i%nodeFan]}
}

// bytes is the memory of the set, without s itself.
func (s *pieces) bytes() int { return int(perNode*s.nodes() + 8*s.held) }

// before returns how many positions are in the pieces before one.
func (s *pieces) before(i uint64) uint64 {
	at := i / nodeFan
	r := &s.root[at/branchFan]
	before := r.before
	for _, ones := range r.branch.ones[:at%branchFan] {
		before += uint64(ones)
	}
	for _, ones := range r.branch.nodes[at%branchFan].ones[:i%nodeFan] {
		before += uint64(ones)
	}
	return before
}

// contains reports whether p, which must be below m, is in the set.
func (s *pieces) contains(p uint64) bool {
	i, bucket := s.at(p)
	e := s.piece(i)
	if s.bitmap {
		return s.words(e)[bucket>>6]>>(bucket&63)&1 != 0
	}
	return s.bucketHas(e, bucket, p&(1<<s.shift-1))
}

// bucketHas reports whether a bucket of a piece has a position with these low bits.
func (l *form) bucketHas(e piece, bucket, want uint64) bool {
	words := l.words(e)
	highs := words[l.lowWords(uint64(e.ones)):]
	at := bucketStart(highs, bucket)
	// The run's length is found in one step: no processor can predict, bit by bit, where the
	// run ends.
	for rank := at - bucket; ; {
		run := uint64(bits.TrailingZeros64(^(highs[at>>6] >> (at & 63))))
		for end := rank + run; rank < end; rank++ {
			if l.low(words, rank) == want {
				return true
			}
		}
		if at += run; at&63 != 0 || run == 0 {
			return false
		}
	}
}

// bucketStart returns the bit at which a bucket begins: the one after as many zeros.
func bucketStart(highs []uint64, bucket uint64) uint64 {
	if bucket == 0 {
		return 0
	}
	for w, word := range highs {
		n := uint64(bits.OnesCount64(^word))
		if n >= bucket {
			return uint64(w)<<6 + selectBit(^word, bucket-1) + 1
		}
		bucket -= n
	}
	return uint64(len(highs)) << 6 // there are as many zeros as buckets
}

// low returns the low bits of a piece's i-th position.
func (l *form) low(words []uint64, i uint64) uint64 {
	return bitsAt(words, i*uint64(l.shift)) & (1<<l.shift - 1)
}

// find looks for the position with the low bits want in a bucket. It returns how many positions
// of the piece are below it, and whether it is there.
func (l *form) find(e piece, bucket, want uint64) (rank uint64, found bool) {
	words := l.words(e)
	if l.bitmap {
		for _, w := range words[:bucket>>6] {
			rank += uint64(bits.OnesCount64(w))
		}
		w := words[bucket>>6]
		return rank + uint64(bits.OnesCount64(w&(1<<(bucket&63)-1))), w>>(bucket&63)&1 != 0
	}
	highs := words[l.lowWords(uint64(e.ones)):]
	at := bucketStart(highs, bucket)
	for rank = at - bucket; highs[at>>6]>>(at&63)&1 != 0; rank++ {
		if low := l.low(words, rank); low >= want {
			return rank, low == want
		}
		at++
	}
	return rank, false
}

// selectBit returns the place of the one that has n ones below it in word. It has no branch
// that depends on word (Vigna, Broadword implementation of rank/select queries, 2008). It
// counts the ones up to the end of each byte, all at once, and how many bytes have too few. A
// table finds the place in the byte.
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

// selectInByte[n][b] is the place of the one that has n ones below it in b.
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
