package digest

import "math/bits"

// A cursor walks the positions of a filter in ascending order, whatever its
// representation. Both are walks over the ones of an array: in a bitmap the place
// of a one is the position, in a sortedSet it is the position's high half plus
// its index.
type cursor struct {
	words []uint64
	at    int    // index of the word in hand
	word  uint64 // its ones not yet visited
	set   *sortedSet
	index uint64 // of the next position in set
}

func (f *Filter) cursor() cursor {
	c := cursor{words: f.words, set: f.set}
	if f.set != nil {
		c.words = f.set.high
	}
	if len(c.words) > 0 {
		c.word = c.words[0]
	}
	return c
}

// next returns the next position; ok is false after the last.
func (c *cursor) next() (p uint64, ok bool) {
	for c.word == 0 {
		c.at++
		if c.at >= len(c.words) {
			return 0, false
		}
		c.word = c.words[c.at]
	}
	p = uint64(c.at)<<6 + uint64(bits.TrailingZeros64(c.word))
	c.word &= c.word - 1
	if c.set != nil {
		p = (p-c.index)<<c.set.shift | c.set.lowAt(c.index)
		c.index++
	}
	return p, true
}
