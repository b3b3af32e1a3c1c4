package digest

import (
	"math/bits"
	"sort"
)

// A pieceBuilder makes a set of positions that come in ascending order.
type pieceBuilder struct {
	set     pieces
	pending []uint64 // of a list, positions for the piece at hand that are not yet written
	words   []uint64 // of a bitmap, the piece at hand
	next    uint64   // the piece at hand
	end     uint64   // first position after it
}

func newPieceBuilder(l form) *pieceBuilder {
	b := &pieceBuilder{set: pieces{form: l, nodes: make([]nodeRef, (l.count-1)/fanOut+1)}}
	b.end = l.span()
	return b
}

// add takes more positions, above all so far.
func (b *pieceBuilder) add(positions []uint64) {
	for len(positions) > 0 {
		if positions[0] >= b.end {
			b.close(b.pending)
			b.pending = b.pending[:0]
			b.skip(positions[0])
		}
		n := len(positions)
		if positions[n-1] >= b.end {
			n = sort.Search(n, func(i int) bool { return positions[i] >= b.end })
		}
		switch {
		case b.set.bitmap:
			for _, p := range positions[:n] {
				b.set1(p)
			}
		case n < len(positions) && len(b.pending) == 0:
			b.close(positions[:n])
		default:
			b.pending = append(b.pending, positions[:n]...)
		}
		positions = positions[n:]
	}
}

// set1 sets a position of the bitmap at hand.
func (b *pieceBuilder) set1(p uint64) {
	if b.words == nil {
		b.words = make([]uint64, b.set.buckets/64)
	}
	p += b.set.buckets - b.end
	b.words[p>>6] |= 1 << (p & 63)
}

// addWords takes the ones of words, which begin at a position that is a multiple of
// 64. The set is a bitmap.
func (b *pieceBuilder) addWords(from uint64, words []uint64) {
	for len(words) > 0 {
		if from >= b.end {
			b.close(nil)
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

// skip closes the empty pieces before that of p.
func (b *pieceBuilder) skip(p uint64) {
	for p >= b.end {
		b.close(nil)
	}
}

// close ends the piece at hand, of which list are the positions.
func (b *pieceBuilder) close(list []uint64) {
	s := &b.set
	ref := &s.nodes[b.next/fanOut]
	if ref.node == nil {
		ref.node = new(node)
	}
	e := &ref.node[b.next%fanOut]
	if s.bitmap {
		*e = s.newBitmap(b.words)
		b.words = nil
	} else {
		*e = s.newList(list, b.end-s.span())
	}
	s.held += s.holds(e)
	b.next++
	b.end += s.span()
}

func (b *pieceBuilder) finish() pieces {
	for b.next < b.set.count {
		b.close(b.pending)
		b.pending = b.pending[:0]
	}
	s := b.set
	for i := range s.nodes {
		s.nodes[i].node.sum()
	}
	s.sum(0)
	return s
}

// sum counts the positions before each piece. What the last node has beyond the
// last piece is empty.
func (n *node) sum() {
	before := uint32(0)
	for i := range n {
		if n[i].words == nil {
			n[i].words = &zeroWords[0]
		}
		n[i].before = before
		before += n[i].ones
	}
}

func (n *node) ones() uint64 { return uint64(n[fanOut-1].before) + uint64(n[fanOut-1].ones) }

// sum counts the positions before each node from the first on that changed.
func (s *pieces) sum(first int) {
	for i := first + 1; i < len(s.nodes); i++ {
		s.nodes[i].before = s.nodes[i-1].before + s.nodes[i-1].node.ones()
	}
}

// holds is how many words a piece takes.
func (l *form) holds(e *piece) uint64 {
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

// newList makes a piece of positions from start on.
func (l *form) newList(positions []uint64, start uint64) piece {
	n := uint64(len(positions))
	if n == 0 {
		return piece{words: &zeroWords[0]}
	}
	words := make([]uint64, l.length(n))
	highs := words[l.lowWords(n):]
	pending, fill, at := uint64(0), uint(0), 0
	for i, p := range positions {
		p -= start
		bit := p>>l.shift + uint64(i)
		highs[bit>>6] |= 1 << (bit & 63)
		low := p & (1<<l.shift - 1)
		pending |= low << fill
		if fill += l.shift; fill >= 64 {
			words[at] = pending
			at++
			fill -= 64
			pending = low >> (l.shift - fill)
		}
	}
	if fill > 0 {
		words[at] = pending
	}
	return piece{words: &words[0], ones: uint32(n)}
}
