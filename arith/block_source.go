package arith

import (
	"math/bits"
	"slices"
)

// source is the set to be coded, as an array of bits or as a list. Its members are its
// positions or, with flip, the positions that it lacks.
type source struct {
	words     []uint64
	positions []uint64 // if words is nil
	m         uint64
	flip      bool
}

// members yields the members in order.
func (s *source) members(yield func(uint64) bool) {
	if s.words == nil && !s.flip {
		for _, p := range s.positions {
			if !yield(p) {
				return
			}
		}
		return
	}
	var words [wordBatch]uint64
	for from := uint64(0); from < s.m; from += 64 * wordBatch {
		for i, w := range s.array(words[:min(wordBatch, wordsFor(s.m-from))], from) {
			for ; w != 0; w &= w - 1 {
				if !yield(from + 64*uint64(i) + uint64(bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// between returns the positions in [from, to).
func (s *source) between(from, to uint64) []uint64 {
	i, _ := slices.BinarySearch(s.positions, from)
	j, _ := slices.BinarySearch(s.positions, to)
	return s.positions[i:j]
}

// array returns members as an array of bits, as many words as dst has. It begins at position
// from, a multiple of 64. The result may be written to dst.
func (s *source) array(dst []uint64, from uint64) []uint64 {
	if s.words != nil {
		words := s.words[from/64:][:len(dst)]
		if !s.flip {
			return words
		}
		copy(dst, words)
	} else {
		clear(dst)
		for _, p := range s.between(from, from+64*uint64(len(dst))) {
			dst[(p-from)/64] |= 1 << (p % 64)
		}
	}
	if s.flip {
		invert(dst, from, s.m)
	}
	return dst
}

// invert inverts the bits of words, which begin at position from, up to position m.
func invert(words []uint64, from, m uint64) {
	for i := range words {
		words[i] = ^words[i]
	}
	if end := from + 64*uint64(len(words)); end > m {
		words[len(words)-1] &= 1<<(m%64) - 1
	}
}
