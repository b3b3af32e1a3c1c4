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

// members puts the positions of the ones in words, at most gapWords of them
// that begin at position from, into found, and returns how many there are.
//
// A processor cannot predict whether a word has any ones, nor whether it has a second one.
// So both are written in such a way that Go compiles them without a branch.
func members(found *[gapWords * 64]uint64, words []uint64, from uint64) int {
	n := uint64(0)
	for ; len(words) >= 64; from += 64 * 64 {
		n = membersOf(found, n, (*[64]uint64)(words), from)
		words = words[64:]
	}
	if len(words) > 0 {
		var last [64]uint64
		copy(last[:], words)
		n = membersOf(found, n, &last, from)
	}
	return int(n)
}

// membersOf is members for 64 words. It appends to the n positions that were found before.
//
// The place of the lowest one of w is the number of ones in w^(w-1), less one.
func membersOf(found *[gapWords * 64]uint64, n uint64, words *[64]uint64, from uint64) uint64 {
	from--
	for some := nonzero(words); some != 0; some &= some - 1 {
		i := uint64(bits.OnesCount64(some^(some-1))) - 1
		w := words[i%64]
		at := from + 64*i
		found[n%(gapWords*64)] = at + uint64(bits.OnesCount64(w^(w-1)))
		w &= w - 1
		found[(n+1)%(gapWords*64)] = at + uint64(bits.OnesCount64(w^(w-1)))
		n += 1 + one(w != 0)
		for w &= w - 1; w != 0; w &= w - 1 {
			found[n%(gapWords*64)] = at + uint64(bits.OnesCount64(w^(w-1)))
			n++
		}
	}
	return n
}

// nonzero returns a bit for each word that is not zero: adding all ones to such a word carries.
func nonzero(words *[64]uint64) (some uint64) {
	for i := len(words) - 4; i >= 0; i -= 4 {
		_, carry := bits.Add64(words[i+3], 1<<64-1, 0)
		some, _ = bits.Add64(some, some, carry)
		_, carry = bits.Add64(words[i+2], 1<<64-1, 0)
		some, _ = bits.Add64(some, some, carry)
		_, carry = bits.Add64(words[i+1], 1<<64-1, 0)
		some, _ = bits.Add64(some, some, carry)
		_, carry = bits.Add64(words[i], 1<<64-1, 0)
		some, _ = bits.Add64(some, some, carry)
	}
	return some
}

func one(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}
