package digest

import (
	"math/bits"
	"unsafe"
)

// unrank converts ranks among the clear positions of s, and ranks among its set positions, to
// positions in ascending order. It overwrites its arguments. Each rank takes one descent from
// the root to a piece, so the time does not depend on the set's size.
func (s *pieces) unrank(clear, set []uint64) []uint64 {
	s.positions(clear, false)
	s.positions(set, true)
	if len(set) == 0 {
		return clear
	}
	return inOne(make([]uint64, 0, len(clear)+len(set)), clear, set)
}

// selectAhead is how many ranks are looked up at the same time.
const selectAhead = 32

// positions replaces ascending ranks by the positions: ranks among the set positions, or among
// the clear ones. It descends for many ranks at the same time, so that their waits for memory
// overlap.
func (s *pieces) positions(ranks []uint64, set bool) {
	var at, rest [selectAhead]uint64 // the child that each rank leads to, and the rank in it
	span := s.span()
	for len(ranks) > 0 {
		some := ranks[:min(selectAhead, len(ranks))]
		for j, r := range some {
			at[j], rest[j] = s.branchOf(r, set)
			b := s.root[at[j]].branch
			prefetchAt(uintptr(unsafe.Pointer(b)), unsafe.Sizeof(*b))
		}
		for j := range some {
			in, r := childOf(s.root[at[j]].branch.ones[:], rest[j], nodeFan*span, set)
			at[j], rest[j] = branchFan*at[j]+in, r
			n := *s.node(at[j])
			prefetchAt(uintptr(unsafe.Pointer(n)), unsafe.Sizeof(*n))
		}
		for j := range some {
			in, r := childOf((*s.node(at[j])).ones[:], rest[j], span, set)
			at[j], rest[j] = nodeFan*at[j]+in, r
			s.prefetch(at[j])
		}
		if len(some) == selectAhead && at[0] == at[len(some)-1] {
			ranks = ranks[s.walk(ranks, at[0], set):]
			continue
		}
		for j := range some {
			some[j] = s.selectIn(at[j], rest[j], set)
		}
		ranks = ranks[len(some):]
	}
}

// branchOf returns the branch that has the position of a rank, and the rank in it.
func (s *pieces) branchOf(rank uint64, set bool) (at, rest uint64) {
	span := branchFan * nodeFan * s.span()
	before := func(at uint64) uint64 {
		if set {
			return s.root[at].before
		}
		return at*span - s.root[at].before
	}
	for n := uint64(len(s.root)); n > 1; {
		half := n / 2
		if before(at+half) <= rank {
			at += half
		}
		n -= half
	}
	return at, rank - before(at)
}

// childOf returns which child of a node or a branch has the position of a rank, and the rank in
// it. Each child has span positions, of which ones are set.
func childOf(ones []uint32, rank, span uint64, set bool) (at, rest uint64) {
	for _, n := range ones[:len(ones)-1] {
		size := uint64(n)
		if !set {
			size = span - size
		}
		if rank < size {
			break
		}
		rank -= size
		at++
	}
	return at, rank
}

// walk is positions for the first ranks, those in one piece: it visits that piece once. It
// returns how many ranks these are.
func (s *pieces) walk(ranks []uint64, i uint64, set bool) (n int) {
	start, before, size := i*s.span(), s.before(i), uint64(s.piece(i).ones)
	if !set {
		before, size = start-before, s.span()-size
	}
	c, below := s.cursorOf(i), uint64(0)
	p, more := c.next()
	for ; n < len(ranks) && ranks[n]-before < size; n++ {
		r := ranks[n] - before
		if set {
			for ; below < r; below++ {
				p, more = c.next()
			}
			ranks[n] = p
			continue
		}
		for ; more && p-start-below <= r; below++ {
			p, more = c.next()
		}
		ranks[n] = start + r + below
	}
	return n
}

// prefetch prefetches a piece: all of it, since the caller will copy it, but 1 KiB at most.
func (s *pieces) prefetch(i uint64) {
	e := s.piece(i)
	prefetchAt(uintptr(unsafe.Pointer(e.words)), uintptr(min(8*s.length(uint64(e.ones)), 1024)))
}

// selectIn returns the r-th position that is set in a piece, or the r-th that is clear.
func (s *pieces) selectIn(i, r uint64, set bool) uint64 {
	e, start := s.piece(i), i*s.span()
	words := s.words(e)
	if s.bitmap {
		return start + selectInBitmap(words, r, set)
	}
	highs := words[s.lowWords(uint64(e.ones)):]
	if set {
		at := selectInBitmap(highs, r, true)
		return start + ((at-r)<<s.shift | s.low(words, r))
	}
	return start + s.selectClear(words, highs, r)
}

// selectInBitmap returns the place of the r-th one, or of the r-th zero. There must be as many.
func selectInBitmap(words []uint64, r uint64, ones bool) uint64 {
	invert := ^uint64(0)
	if ones {
		invert = 0
	}
	for w, word := range words {
		word ^= invert
		n := uint64(bits.OnesCount64(word))
		if r < n {
			return uint64(w)<<6 + selectBit(word, r)
		}
		r -= n
	}
	panic("digest: a rank beyond a piece")
}

// selectClear returns the r-th clear position of a list, relative to the piece's first. That is
// r plus the number of set positions below it: those with at most r clear positions below them.
func (l *form) selectClear(words, highs []uint64, r uint64) uint64 {
	below := uint64(0) // set positions known to be below
	for w, word := range highs {
		ones := below + uint64(bits.OnesCount64(word))
		bucket := uint64(w+1)<<6 - ones
		// All positions of this word are in that bucket or an earlier one.
		if (bucket+1)<<l.shift <= r+ones {
			below = ones
			continue
		}
		for at := uint64(w) << 6; word != 0; word &= word - 1 {
			bucket := at + uint64(bits.TrailingZeros64(word)) - below
			if (bucket+1)<<l.shift > r+below && bucket<<l.shift|l.low(words, below) > r+below {
				return r + below
			}
			below++
		}
	}
	return r + below
}
