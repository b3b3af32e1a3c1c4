package digest

import "math/bits"

// A countArray holds a four-bit counter for each position of a shard, and a bit
// that says whether the position differs from the frozen filter.
type countArray struct {
	counts  []uint64 // 16 a word
	changed []uint64 // 64 a word
	net     int      // ones in changed
	journal []uint32 // at least the words of changed that are not zero
}

// arrayBytes is what a countArray of span positions occupies.
func arrayBytes(span uint64) uint64 { return span/2 + span/8 }

func newCountArray(span uint64) *countArray {
	return &countArray{
		counts:  make([]uint64, (span+15)/16),
		changed: make([]uint64, (span+63)/64),
	}
}

func (a *countArray) count(rel uint32) uint8 {
	return uint8(a.counts[rel/16] >> (rel % 16 * 4) & maxCount)
}

// increment returns the former count.
func (a *countArray) increment(rel uint32) uint8 {
	n := a.count(rel)
	if n == maxCount {
		return n
	}
	a.counts[rel/16] += 1 << (rel % 16 * 4)
	if n == 0 {
		a.toggle(rel)
	}
	return n
}

// decrement takes one from a counter that is not zero.
func (a *countArray) decrement(rel uint32) {
	n := a.count(rel)
	if n == maxCount {
		return
	}
	a.counts[rel/16] -= 1 << (rel % 16 * 4)
	if n == 1 {
		a.toggle(rel)
	}
}

// toggle notes that rel went from clear to set or back.
func (a *countArray) toggle(rel uint32) {
	w := rel / 64
	before := a.changed[w]
	a.changed[w] ^= 1 << (rel % 64)
	if a.changed[w] > before {
		a.net++
	} else {
		a.net--
	}
	if before != 0 {
		return
	}
	// Words that come and go are noted again each time: once the journal is twice
	// as long as the array, write it anew from the array.
	if len(a.journal) >= 2*len(a.changed) {
		a.journal = a.journal[:0]
		for i, word := range a.changed {
			if word != 0 {
				a.journal = append(a.journal, uint32(i))
			}
		}
		return
	}
	a.journal = append(a.journal, w)
}

func (a *countArray) drain(dst []uint64) []uint64 {
	for _, w := range a.journal {
		for word := a.changed[w]; word != 0; word &= word - 1 {
			rel := w*64 + uint32(bits.TrailingZeros64(word))
			set := uint64(0)
			if a.count(rel) != 0 {
				set = 1
			}
			dst = append(dst, uint64(rel)<<1|set)
		}
		a.changed[w] = 0
	}
	a.net = 0
	a.journal = recycle(a.journal)
	return dst
}
