package arith

import (
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
	for ; len(words) > 0; from += 64 * 64 {
		now := words[:min(64, len(words))]
		words = words[len(now):]
		for some := nonzero(now); some != 0; some &= some - 1 {
			i := uint64(lowestOne(some))
			w := now[i]
			at := from + 64*i
			found[n%(gapWords*64)] = at + uint64(lowestOne(w))
			n++
			w &= w - 1
			found[n%(gapWords*64)] = at + uint64(lowestOne(w))
			if w != 0 {
				n++
			}
			for w &= w - 1; w != 0; w &= w - 1 {
				found[n%(gapWords*64)] = at + uint64(lowestOne(w))
				n++
			}
		}
	}
	return int(n)
}

// nonzero returns which of at most 64 words are not zero.
func nonzero(words []uint64) (some uint64) {
	for ; len(words)%4 != 0; words = words[:len(words)-1] {
		some = 2*some + one(words[len(words)-1] != 0)
	}
	for ; len(words) >= 4; words = words[:len(words)-4] {
		w := words[len(words)-4:]
		some = 2*some + one(w[3] != 0)
		some = 2*some + one(w[2] != 0)
		some = 2*some + one(w[1] != 0)
		some = 2*some + one(w[0] != 0)
	}
	return some
}

func one(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// lowestOne returns the place of the lowest one of w, or 0 if w is zero. It is
// de Bruijn's way (Leiserson, Prokop and Randall 1998): faster than the
// instruction that every amd64 has, and than asking whether there is a better.
func lowestOne(w uint64) uint8 { return places[w&-w*deBruijn>>58] }

const deBruijn = 0x03f79d71b4ca8b09

var places = func() (t [64]uint8) {
	for i := range t {
		t[uint64(deBruijn)<<i>>58] = uint8(i)
	}
	return t
}()
