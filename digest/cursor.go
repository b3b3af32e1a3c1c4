package digest

import "math/bits"

// A cursor visits the positions of a set in ascending order. In both forms it visits the ones
// of words. In a bitmap the place of a one is the position; in a list it is the position's high
// part plus its rank.
type cursor struct {
	set   *pieces
	piece uint64 // the next one
	end   uint64 // the piece at which it stops
	words []uint64
	highs []uint64 // words of the current piece; of a list, those with the high parts
	start uint64   // its first position
	at    int      // index of the current word
	word  uint64   // its ones not yet visited
	rank  uint64   // in the piece, of the next position
	found [64]uint64
	n, i  int // how many are in found, and how many of them were returned
}

func (s *pieces) cursor() cursor { return cursor{set: s, end: s.count, at: -1} }

// cursorOf visits one piece.
func (s *pieces) cursorOf(i uint64) cursor { return cursor{set: s, piece: i, end: i + 1, at: -1} }

// cursorAt visits the positions from the bucket of p on. p must be below m.
func (s *pieces) cursorAt(p uint64) cursor {
	i, bucket := s.at(p)
	c := cursor{set: s, piece: i, end: s.count}
	c.open()
	at := bucket
	if !s.bitmap {
		at = bucketStart(c.highs, bucket)
		c.rank = at - bucket
	}
	if c.at = int(at >> 6); c.at < len(c.highs) {
		c.word = c.highs[c.at] &^ (1<<(at&63) - 1)
	}
	return c
}

// next returns the next position; ok is false after the last.
func (c *cursor) next() (p uint64, ok bool) {
	if c.i == c.n {
		if c.fill(); c.n == 0 {
			return 0, false
		}
	}
	p = c.found[c.i&63]
	c.i++
	return p, true
}

// batch returns up to 64 next positions, and none after the last. They are valid until the next
// call.
func (c *cursor) batch() []uint64 {
	if c.i == c.n {
		c.fill()
	}
	some := c.found[c.i:c.n]
	c.i = c.n
	return some
}

// fill finds the next positions. Each turn of the loop takes a one, or goes on to the next word
// or piece, so it ends.
func (c *cursor) fill() {
	n, s := 0, c.set
	for n < len(c.found) {
		if c.word == 0 {
			if c.at++; c.at < len(c.highs) {
				c.word = c.highs[c.at]
				continue
			}
			if c.piece == c.end {
				break
			}
			c.open()
			continue
		}
		word, from, rank := c.word, uint64(c.at)<<6, c.rank
		if s.bitmap {
			for from += c.start; word != 0 && n < len(c.found); word &= word - 1 {
				c.found[n&63] = from + uint64(bits.TrailingZeros64(word))
				n++
			}
		} else {
			for ; word != 0 && n < len(c.found); word &= word - 1 {
				bucket := from + uint64(bits.TrailingZeros64(word)) - rank
				c.found[n&63] = c.start + (bucket<<s.shift | s.low(c.words, rank))
				rank++
				n++
			}
			c.rank = rank
		}
		c.word = word
	}
	c.n, c.i = n, 0
}

func (c *cursor) open() {
	e := c.set.piece(c.piece)
	c.start = c.piece * c.set.span()
	c.words, c.at, c.rank = c.set.words(e), -1, 0
	c.highs = c.words
	if !c.set.bitmap {
		c.highs = c.words[c.set.lowWords(uint64(e.ones)):]
	}
	c.piece++
}

// list returns all positions.
func (s *pieces) list() []uint64 {
	last := s.count - 1
	list := make([]uint64, 0, s.before(last)+uint64(s.piece(last).ones))
	c := s.cursor()
	for some := c.batch(); len(some) > 0; some = c.batch() {
		list = append(list, some...)
	}
	return list
}

// whole returns the whole bitmap.
func (s *pieces) whole() []uint64 {
	words := make([]uint64, 0, s.count*s.buckets/64)
	for i := range s.count {
		words = append(words, s.words(s.piece(i))...)
	}
	return words[:(s.bits+63)/64]
}
