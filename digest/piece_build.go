package digest

import (
	"math/bits"
	"slices"
	"sort"
)

// A pieceBuilder makes a set from positions that come in ascending order. Besides the set it
// holds the current piece, as far as it is known.
type pieceBuilder struct {
	set   pieces
	words []uint64 // of the current piece: the bitmap, or a list's low bits
	highs []uint64 // a list's high parts
	ones  uint64   // in the list
	next  uint64   // index of the current piece
	end   uint64   // first position after it
}

func newPieceBuilder(l form) *pieceBuilder {
	b := &pieceBuilder{set: pieces{form: l, root: make([]branchRef, (l.nodes()-1)/branchFan+1)}}
	b.end = l.span()
	return b
}

// add adds positions, which are above all so far.
func (b *pieceBuilder) add(positions []uint64) {
	for len(positions) > 0 {
		for positions[0] >= b.end {
			b.close()
		}
		n := len(positions)
		if positions[n-1] >= b.end {
			n = sort.Search(n, func(i int) bool { return positions[i] >= b.end })
		}
		if b.set.bitmap {
			for _, p := range positions[:n] {
				b.set1(p)
			}
		} else {
			b.list(positions[:n])
		}
		positions = positions[n:]
	}
}

// list adds positions to the current list.
func (b *pieceBuilder) list(positions []uint64) {
	l := &b.set.form
	n := b.ones + uint64(len(positions))
	b.words, b.highs = lengthen(b.words, l.lowWords(n)+1), lengthen(b.highs, (l.buckets+n+63)/64)
	start, at := b.end-l.span(), b.ones*uint64(l.shift)
	word, fill := at>>6, uint(at&63)
	pending := b.words[word]
	for i, p := range positions {
		p -= start
		bit := p>>l.shift + b.ones + uint64(i)
		b.highs[bit>>6] |= 1 << (bit & 63)
		low := p & (1<<l.shift - 1)
		pending |= low << fill
		if fill += l.shift; fill >= 64 {
			b.words[word] = pending
			word++
			fill -= 64
			pending = low >> (l.shift - fill)
		}
	}
	b.words[word] = pending
	b.ones = n
}

// lengthen returns words, extended by zeros if there are fewer than n.
func lengthen(words []uint64, n uint64) []uint64 {
	have := len(words)
	if uint64(have) >= n {
		return words
	}
	words = slices.Grow(words, int(n)-have)[:n]
	clear(words[have:])
	return words
}

// set1 sets a position of the current bitmap.
func (b *pieceBuilder) set1(p uint64) {
	if b.words == nil {
		b.words = make([]uint64, b.set.buckets/64)
	}
	p += b.set.buckets - b.end
	b.words[p>>6] |= 1 << (p & 63)
}

// addWords adds the ones of words. These begin at a position that is a multiple of 64. The set
// must be a bitmap.
func (b *pieceBuilder) addWords(from uint64, words []uint64) {
	for len(words) > 0 {
		if from >= b.end {
			b.close()
			continue
		}
		n := min(uint64(len(words)), (b.end-from)/64)
		if b.words == nil {
			b.words = make([]uint64, b.set.buckets/64)
		}
		copy(b.words[(from+b.set.buckets-b.end)/64:], words[:n])
		from, words = from+64*n, words[n:]
	}
}

// close ends the current piece.
func (b *pieceBuilder) close() {
	s := &b.set
	if b.next%(branchFan*nodeFan) == 0 {
		s.root[b.next/(branchFan*nodeFan)].branch = new(branch)
	}
	if b.next%nodeFan == 0 {
		*s.node(b.next / nodeFan) = new(node)
	}
	var e piece
	if s.bitmap {
		e = s.newBitmap(b.words)
		b.words = nil
	} else {
		e = s.newList(b.words, b.highs, b.ones)
		b.words, b.highs, b.ones = b.words[:0], b.highs[:0], 0
	}
	s.put(b.next, e)
	s.held += s.holds(e)
	b.next++
	b.end += s.span()
}

func (b *pieceBuilder) finish() pieces {
	for b.next < b.set.count {
		b.close()
	}
	s := b.set
	before := uint64(0)
	for i := range s.root {
		s.root[i].before = before
		for _, ones := range s.root[i].branch.ones {
			before += uint64(ones)
		}
	}
	return s
}

// put replaces a piece, in a node and a branch that no other set shares.
func (s *pieces) put(i uint64, e piece) {
	at := i / nodeFan
	b := s.root[at/branchFan].branch
	n := b.nodes[at%branchFan]
	b.ones[at%branchFan] += e.ones - n.ones[i%nodeFan]
	n.words[i%nodeFan], n.ones[i%nodeFan] = e.words, e.ones
}

// holds returns how many words of memory a piece takes.
func (l *form) holds(e piece) uint64 {
	if e.words == &zeroWords[0] {
		return 0
	}
	return classWords(l.length(uint64(e.ones)))
}

// newBitmap makes a piece of words, which it keeps.
func (l *form) newBitmap(words []uint64) piece {
	ones := 0
	for _, w := range words {
		ones += bits.OnesCount64(w)
	}
	if ones == 0 {
		return piece{words: &zeroWords[0]}
	}
	return piece{words: &words[0], ones: uint32(ones)}
}

// newList makes a piece of the low bits and the high parts of so many positions.
func (l *form) newList(lows, highs []uint64, ones uint64) piece {
	if ones == 0 {
		return piece{words: &zeroWords[0]}
	}
	words := make([]uint64, l.length(ones))
	n := l.lowWords(ones)
	copy(words, lows[:n])
	copy(words[n:], highs)
	return piece{words: &words[0], ones: uint32(ones)}
}
