package digest

import (
	"slices"
	"sync"
)

// maxCount is where a counter stops. A counter that has reached it no longer
// knows how many keys stand on its position, so it is never decremented again:
// the position stays set until the filter is rebuilt, which costs false
// positives and never a false negative.
const maxCount = 15

// A shard counts the keys on each position of one stretch of the position space.
// Positions are relative to it. It begins as a hash table of the counts that are
// not zero and turns into an array of four-bit counters once that is smaller;
// either way it remembers which positions differ from the last frozen filter, so
// that freezing takes time in proportion to what changed.
//
// Everything but the constants is guarded by mu.
type shard struct {
	mu    sync.Mutex
	table countTable
	array *countArray // instead of table, if not nil

	keys      int // keys whose first position is here
	refused   uint64
	saturated int
	touched   map[Key]touch // what happens to those keys while a rebuild runs, or nil

	_ [16]byte // two cache lines, so that neighbours do not share one
}

// count returns how many keys stand on rel.
func (s *shard) count(rel uint32) uint8 {
	if s.array != nil {
		return s.array.count(rel)
	}
	return s.table.count(rel)
}

func (s *shard) increment(rel uint32, span uint64, salt uint64) {
	if s.array == nil && s.table.full() {
		if s.table.grownBytes() < arrayBytes(span) {
			s.table.grow(salt)
		} else {
			s.array = s.table.toArray(span)
			s.table = countTable{}
		}
	}
	var n uint8
	if s.array != nil {
		n = s.array.increment(rel)
	} else {
		n = s.table.increment(rel)
	}
	if n == maxCount-1 {
		s.saturated++
	}
}

// decrement takes one from a counter that is not zero.
func (s *shard) decrement(rel uint32) {
	if s.array != nil {
		s.array.decrement(rel)
		return
	}
	s.table.decrement(rel)
}

// changed returns how many positions differ from the last frozen filter.
func (s *shard) changed() int {
	if s.array != nil {
		return s.array.net
	}
	return s.table.net
}

// drain appends the positions that differ from the last frozen filter, each as
// rel<<1 with the low bit saying whether it is set now, in no order, and makes
// the present contents the frozen ones.
func (s *shard) drain(dst []uint64) []uint64 {
	if s.array != nil {
		return s.array.drain(dst)
	}
	return s.table.drain(dst)
}

// A countTable is an open-addressed hash table with linear probing. A slot holds
// a position in its upper half and its count and flags in the lower.
type countTable struct {
	slots   []uint64 // a power of two
	shift   uint     // 64 - log2(len(slots))
	used    int
	salt    uint64   // odd multiplier, random so that probes cannot be made long
	net     int      // positions that differ from the frozen filter
	journal []uint32 // at least those, each once
}

const (
	slotCount     = 0xf    // how many keys
	slotFrozen    = 1 << 4 // set in the frozen filter
	slotJournaled = 1 << 5 // in the journal
	slotUsed      = 1 << 6
	minSlots      = 16
)

func (t *countTable) full() bool { return t.used*4 >= len(t.slots)*3 }

func (t *countTable) grownBytes() uint64 { return 8 * uint64(max(minSlots, 2*len(t.slots))) }

func (t *countTable) grow(salt uint64) {
	old := t.slots
	size := max(minSlots, 2*len(old))
	t.slots = make([]uint64, size)
	t.shift = 64
	for n := size; n > 1; n /= 2 {
		t.shift--
	}
	t.salt = salt
	for _, slot := range old {
		if slot != 0 {
			i, _ := t.find(uint32(slot >> 32))
			t.slots[i] = slot
		}
	}
}

// home is the slot where the search for rel begins.
func (t *countTable) home(rel uint32) uint64 { return uint64(rel) * t.salt >> t.shift }

// find returns the slot of rel, or the free one where it would go.
func (t *countTable) find(rel uint32) (i uint64, found bool) {
	mask := uint64(len(t.slots) - 1)
	for i = t.home(rel); ; i = (i + 1) & mask {
		slot := t.slots[i&mask]
		if slot == 0 {
			return i, false
		}
		if uint32(slot>>32) == rel {
			return i, true
		}
	}
}

func (t *countTable) count(rel uint32) uint8 {
	if t.used == 0 {
		return 0
	}
	i, found := t.find(rel)
	if !found {
		return 0
	}
	return uint8(t.slots[i] & slotCount)
}

// increment needs a table that is not full. It returns the former count.
func (t *countTable) increment(rel uint32) uint8 {
	i, found := t.find(rel)
	if !found {
		t.used++
		t.slots[i] = uint64(rel)<<32 | slotUsed
	}
	slot := t.slots[i]
	n := slot & slotCount
	switch {
	case n == maxCount:
		return maxCount
	case n == 0:
		t.slots[i] = t.flip(rel, slot+1, slot&slotFrozen == 0)
	default:
		t.slots[i] = slot + 1
	}
	return uint8(n)
}

func (t *countTable) decrement(rel uint32) {
	i, _ := t.find(rel)
	slot := t.slots[i]
	switch slot & slotCount {
	case maxCount:
	case 1:
		t.slots[i] = t.flip(rel, slot-1, slot&slotFrozen != 0)
		if len(t.journal) > 2*t.net+64 {
			t.compact()
		}
	default:
		t.slots[i] = slot - 1
	}
}

// flip notes that rel went from clear to set or back, and returns its slot.
// away says whether it now differs from the frozen filter.
func (t *countTable) flip(rel uint32, slot uint64, away bool) uint64 {
	if !away {
		t.net--
		return slot
	}
	t.net++
	if slot&slotJournaled == 0 {
		t.journal = append(t.journal, rel)
	}
	return slot | slotJournaled
}

// differs reports whether a slot's position is to be flipped in the frozen filter.
func differs(slot uint64) bool { return (slot&slotCount != 0) != (slot&slotFrozen != 0) }

// compact forgets positions that were flipped and flipped back, which a cache
// that churns between two freezes leaves behind.
func (t *countTable) compact() {
	kept := t.journal[:0]
	for _, rel := range t.journal {
		i, _ := t.find(rel)
		if differs(t.slots[i]) {
			kept = append(kept, rel)
			continue
		}
		t.slots[i] &^= slotJournaled
		t.dropIfIdle(i)
	}
	t.journal = kept
}

func (t *countTable) drain(dst []uint64) []uint64 {
	for _, rel := range t.journal {
		i, _ := t.find(rel)
		slot := t.slots[i]
		if differs(slot) {
			set := uint64(0)
			if slot&slotCount != 0 {
				set = 1
			}
			dst = append(dst, uint64(rel)<<1|set)
			slot ^= slotFrozen
		}
		t.slots[i] = slot &^ slotJournaled
		t.dropIfIdle(i)
	}
	t.net = 0
	t.journal = recycle(t.journal)
	return dst
}

// dropIfIdle removes a slot that neither counts nor remembers anything, moving
// back those behind it that were displaced.
func (t *countTable) dropIfIdle(i uint64) {
	if t.slots[i]&(slotCount|slotFrozen|slotJournaled) != 0 {
		return
	}
	t.used--
	mask := uint64(len(t.slots) - 1)
	for j := i; ; {
		j = (j + 1) & mask
		slot := t.slots[j]
		if slot == 0 {
			break
		}
		if (j-t.home(uint32(slot>>32)))&mask >= (j-i)&mask {
			t.slots[i] = slot
			i = j
		}
	}
	t.slots[i] = 0
}

func (t *countTable) toArray(span uint64) *countArray {
	a := newCountArray(span)
	for _, slot := range t.slots {
		rel := uint32(slot >> 32)
		a.counts[rel/16] |= slot & slotCount << (rel % 16 * 4)
		if slot != 0 && differs(slot) {
			a.toggle(rel)
		}
	}
	return a
}

// recycle empties a journal, and lets go of one that an unusual burst has grown.
func recycle[T any](journal []T) []T {
	if cap(journal) > 4096 {
		return nil
	}
	return slices.Delete(journal, 0, len(journal))
}
