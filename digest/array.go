package digest

import "math/bits"

// A shard in array form has two things for each position: a counter of four bits, and a bit
// that says whether the position differs from the frozen filter. Both are in one word, so an
// operation misses the processor's caches once.
const (
	fieldBits     = 5
	fieldsPerWord = 6
	fieldChanged  = 1 << 4

	// changedMask selects bit 4 of every field of a word: whether the position has changed.
	changedMask = fieldChanged * ((1<<(fieldBits*fieldsPerWord) - 1) / (1<<fieldBits - 1))
)

// arrayWords returns how many words so many positions take, in whole lines.
func arrayWords(span uint64) int {
	words := int((span + fieldsPerWord - 1) / fieldsPerWord)
	return (words + perLine - 1) / perLine * perLine
}

// arrayAt returns the index of the word with rel's field, and the field's lowest bit.
func arrayAt(rel uint32) (i int, shift uint) {
	return int(rel / fieldsPerWord), uint(rel%fieldsPerWord) * fieldBits
}

func (s *shard) arrayCount(rel uint32) uint8 {
	i, shift := arrayAt(rel)
	return uint8(s.words()[i] >> shift & maxCount)
}

// arrayLoad sets a counter while an array is filled.
func (s *shard) arrayLoad(rel, count uint32, changed bool) {
	i, shift := arrayAt(rel)
	s.words()[i] |= count << shift
	if changed {
		s.words()[i] |= fieldChanged << shift
		s.mark(i / perLine)
	}
}

// arrayIncrement returns the former count.
func (s *shard) arrayIncrement(rel uint32) uint8 {
	i, shift := arrayAt(rel)
	n := s.words()[i] >> shift & maxCount
	if n == maxCount {
		return maxCount
	}
	s.words()[i] += 1 << shift
	if n == 0 {
		s.toggle(i, shift)
	}
	return uint8(n)
}

func (s *shard) arrayDecrement(rel uint32) uint8 {
	i, shift := arrayAt(rel)
	n := s.words()[i] >> shift & maxCount
	if n == 0 || n == maxCount {
		return uint8(n)
	}
	s.words()[i] -= 1 << shift
	if n == 1 {
		s.toggle(i, shift)
	}
	return uint8(n)
}

// toggle records that a position changed from clear to set or back.
func (s *shard) toggle(i int, shift uint) {
	s.words()[i] ^= fieldChanged << shift
	if s.words()[i]>>shift&fieldChanged == 0 {
		s.differing--
		return
	}
	s.differing++
	s.mark(i / perLine)
}

func (s *shard) drainArray(dst []uint32, from, to int) []uint32 {
	for i, word := range s.words()[from:to] {
		if word&changedMask == 0 {
			continue
		}
		for changed := word & changedMask; changed != 0; changed &= changed - 1 {
			top := bits.TrailingZeros32(changed)
			rel := uint32((from+i)*fieldsPerWord + top/fieldBits)
			set := uint32(0)
			if word>>(top-4)&maxCount != 0 {
				set = 1
			}
			dst = append(dst, rel<<1|set)
		}
		s.words()[from+i] = word &^ changedMask
	}
	return dst
}
