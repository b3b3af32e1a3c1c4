package digest

import (
	"math/bits"
	"unsafe"
)

// unrank turns ranks among the clear positions of s, and among those that are set,
// into positions, ascending. It overwrites what it is given. For each rank it goes
// down from the root to one piece, so that its time does not depend on the set's size.
func (s *pieces) unrank(clear, set []uint64) []uint64 {
	s.positions(clear, false)
	s.positions(set, true)
	if len(set) == 0 {
		return clear
	}
	flips := make([]uint64, 0, len(clear)+len(set))
	for len(clear) > 0 && len(set) > 0 {
		if clear[0] < set[0] {
			flips, clear = append(flips, clear[0]), clear[1:]
		} else {
			flips, set = append(flips, set[0]), set[1:]
		}
	}
	return append(append(flips, clear...), set...)
}

// selectAhead is for how many ranks memory is asked at once.
const selectAhead = 32

// positions puts positions in the place of their ascending ranks, among the
// positions that are set or among those that are clear. It goes down for many ranks
// at the same time, so that memory answers for all of them in the time of one.
func (s *pieces) positions(ranks []uint64, set bool) {
	var at [selectAhead]uint64
	for len(ranks) > 0 {
		some := ranks[:min(selectAhead, len(ranks))]
		for j, r := range some {
			at[j] = s.locateNode(r, set)
			s.askNode(at[j])
		}
		for j, r := range some {
			at[j] = s.locateIn(at[j], r, set)
			s.ask(at[j])
		}
		if len(some) == selectAhead && at[0] == at[len(some)-1] {
			ranks = ranks[s.walk(ranks, at[0], set):]
			continue
		}
		for j, i := range at[:len(some)] {
			some[j] = s.selectIn(i, some[j]-s.before(i, set), set)
		}
		ranks = ranks[len(some):]
	}
}

// walk does positions for the first of ranks, which are in one piece, by going through
// it: all of those, however many there are.
func (s *pieces) walk(ranks []uint64, i uint64, set bool) (n int) {
	start, before, ones := i*s.span(), s.before(i, set), uint64(s.piece(i).ones)
	size := ones
	if !set {
		size = s.span() - ones
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

// before returns how many positions before a piece are set, or clear.
func (s *pieces) before(i uint64, set bool) uint64 {
	ones := s.nodes[i/fanOut].before + uint64(s.piece(i).before)
	if set {
		return ones
	}
	return i*s.span() - ones
}

// locateNode returns the node below which the position of a rank is.
func (s *pieces) locateNode(rank uint64, set bool) uint64 {
	low, n := 0, len(s.nodes)
	each := fanOut * s.span()
	for n > 1 {
		half := n / 2
		before := s.nodes[low+half].before
		if !set {
			before = uint64(low+half)*each - before
		}
		if before <= rank {
			low += half
		}
		n -= half
	}
	return uint64(low)
}

// locateIn returns the piece, below a node, in which the position of a rank is.
func (s *pieces) locateIn(at, rank uint64, set bool) uint64 {
	ref, span := &s.nodes[at], s.span()
	if rank -= ref.before; !set {
		rank += 2*ref.before - at*fanOut*span
	}
	j := uint64(0)
	for half := uint64(fanOut / 2); half > 0; half /= 2 {
		before := uint64(ref.node[(j+half)%fanOut].before)
		if !set {
			before = (j+half)*span - before
		}
		if before <= rank {
			j += half
		}
	}
	return at*fanOut + j
}

// askNode makes memory fetch a node.
func (s *pieces) askNode(at uint64) {
	from := uintptr(unsafe.Pointer(s.nodes[at].node))
	for line := uintptr(0); line < unsafe.Sizeof(node{}); line += 64 {
		prefetchAt(from + line)
	}
}

// ask makes memory fetch a piece: of a list, all of it, since whoever looks for ranks
// is going to change it.
func (s *pieces) ask(i uint64) {
	e := s.piece(i)
	from := uintptr(unsafe.Pointer(e.words))
	n := uintptr(8 * s.length(uint64(e.ones)))
	for line := uintptr(0); line < min(n, 1024); line += 64 {
		prefetchAt(from + line)
	}
}

// selectIn returns the position of the r-th of those that a piece has, or lacks.
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

// selectInBitmap returns the place of the r-th one, or the r-th zero, which there is.
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

// selectClear returns the r-th position that a list lacks, counted from its first:
// r and as many more as there are positions that have no more than r others below
// them.
func (l *form) selectClear(words, highs []uint64, r uint64) uint64 {
	below := uint64(0) // positions known to be below
	for w, word := range highs {
		ones := below + uint64(bits.OnesCount64(word))
		bucket := uint64(w+1)<<6 - ones
		// All in this word are in that bucket or before.
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
