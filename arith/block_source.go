package arith

import (
	"math/bits"
	"slices"
)

// blockSource is the set to be coded, as either of its shapes, turned round
// where the plan says so.
type blockSource struct {
	words     []uint64
	tally     *tally   // of words; may be nil
	positions []uint64 // if words is nil
	m         uint64
	flip      bool
}

// count returns the number of members in [from, to). t is of words, and may be
// nil if these are.
func (s *blockSource) count(t *tally, from, to uint64) uint64 {
	n := uint64(0)
	if s.words != nil {
		n = t.below(s.words, wordsFor(to)) - t.below(s.words, from/64)
	} else {
		n = uint64(len(s.between(from, to)))
	}
	if s.flip {
		n = to - from - n
	}
	return n
}

// between returns the positions in [from, to).
func (s *blockSource) between(from, to uint64) []uint64 {
	i, _ := slices.BinarySearch(s.positions, from)
	j, _ := slices.BinarySearch(s.positions, to)
	return s.positions[i:j]
}

// array returns members as an array of bits that begins at position from, a
// multiple of 64, for as many words as dst has. It may be written to dst.
func (s *blockSource) array(dst []uint64, from uint64) []uint64 {
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

// invert turns the bits of words round that stand for positions from from on
// and below m.
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
// Whether a word has any ones and whether it has a second can't be guessed:
// what is written so that Go makes a conditional set of it costs no branch.
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

// membersOf is members for 64 words, behind the n that were found before.
//
// The lowest one of w is where the number of ones in w^(w-1) says, less one.
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

// nonzero returns which of the words are not zero: those that carry when all
// ones are added.
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
