package digest

import (
	"math/bits"
	"sync"
	"unsafe"
)

// maxCount is where a counter stops. A counter that has reached it no longer
// knows how many keys stand on its position, so it is never decremented again:
// the position stays set until the filter is rebuilt, which costs false
// positives and never a false negative.
const maxCount = 15

// A shard counts the keys on each position of one stretch of the position space.
// Positions are relative to it. It begins as a hash table of the counts that are
// not zero (table.go) and turns into an array of counters once that is smaller
// (array.go). Either way a bit for each position says whether it is set in the
// last frozen filter, or differs from it, and dirty says where to look for those
// that differ, so that freezing takes time in proportion to what changed.
//
// What an operation touches beside the counter itself fits one cache line, which
// is what lets cores work on different shards at once.
type shard struct {
	mu         sync.Mutex // guards everything
	base       *uint32    // the first word of the table or the array: see words
	size       int32      // how many there are
	used       int32      // slots taken, of a table
	dirty      uint64     // bit g: something differs in lines [g<<groupShift, (g+1)<<groupShift)
	sum        uint64     // of mix over the keys whose first position is here: see Verify
	keys       int32      // their number
	differing  int32      // positions that differ from the frozen filter
	groupShift uint8
	isArray    bool
	rare       *rareState // or nil
}

// words returns the table or the array.
func (s *shard) words() []uint32 { return unsafe.Slice(s.base, s.size) }

// word returns a word of it. An index that is checked, or a slice that is made,
// costs a tenth of an operation.
func (s *shard) word(i int) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(s.base), i*4))
}

// dirtWords is the unit in which dirt is noted: as many words as a cache line has.
const dirtWords = 16

// rareState is what few shards, or few operations, need.
type rareState struct {
	fine      []uint64 // of large shards, a bit for every line: a second dirty
	journal   []uint32 // of flat counters, words in which something differs
	touched   map[Key]touch
	refused   uint64
	saturated int
}

func (s *shard) rarely() *rareState {
	if s.rare == nil {
		s.rare = new(rareState)
	}
	return s.rare
}

// count returns how many keys stand on rel.
func (s *shard) count(c *counters, rel uint32) uint8 {
	if s.isArray {
		return s.arrayCount(rel)
	}
	return s.tableCount(c, rel)
}

// increment adds one to a counter, unless it is stuck.
func (s *shard) increment(c *counters, rel uint32) {
	if !s.isArray && s.full() {
		s.grow(c)
	}
	var n uint8
	if s.isArray {
		n = s.arrayIncrement(rel)
	} else {
		n = s.tableIncrement(c, rel)
	}
	if n == maxCount-1 {
		s.rarely().saturated++
	}
}

// decrement takes one from a counter, unless it is stuck, and returns what it
// was. It leaves zero alone.
func (s *shard) decrement(c *counters, rel uint32) uint8 {
	if s.isArray {
		return s.arrayDecrement(rel)
	}
	return s.tableDecrement(c, rel)
}

// grow makes room in the table, or an array of it.
func (s *shard) grow(c *counters) {
	old := s.words()
	if size := s.grownSlots(c); size < arrayWords(c.span()) {
		s.resize(c, size)
		for _, slot := range old {
			if slot != 0 {
				i, _ := s.find(c, slot>>slotBits)
				*s.word(i) = slot
				s.markSlot(i)
			}
		}
		return
	}
	s.resize(c, arrayWords(c.span()))
	s.isArray, s.used = true, 0
	for _, slot := range old {
		if slot != 0 {
			s.arrayLoad(slot>>slotBits, slot&slotCount, differs(slot))
		}
	}
}

// resize gives the shard fresh words, none of them dirty.
func (s *shard) resize(c *counters, words int) {
	fresh := c.arena.words(words)
	s.base, s.size = &fresh[0], int32(words)
	s.dirty = 0
	lines := (words + dirtWords - 1) / dirtWords
	s.groupShift = uint8(max(6, bits.Len(uint(lines-1))) - 6)
	if s.groupShift > maxCoarse {
		s.rarely().fine = make([]uint64, (lines-1)>>6+1)
	}
}

// maxCoarse is the groupShift up to which all lines of a group are looked at.
const maxCoarse = 1

// mark notes that word i holds a position that differs.
func (s *shard) mark(i int) {
	line := uint(i) / dirtWords
	s.dirty |= 1 << (line >> s.groupShift & 63)
	if s.groupShift > maxCoarse {
		s.rare.fine[line>>6] |= 1 << (line & 63)
	}
}

// drain appends the positions that differ from the last frozen filter, each as
// rel<<1 with the low bit saying whether it is set now, in no order, and makes
// the present contents the frozen ones.
func (s *shard) drain(c *counters, dst []uint32) []uint32 {
	lines := (uint(s.size) + dirtWords - 1) / dirtWords
	for s.dirty != 0 {
		group := uint(bits.TrailingZeros64(s.dirty))
		s.dirty &= s.dirty - 1
		from := group << s.groupShift
		to := min(lines, from+1<<s.groupShift)
		if s.groupShift <= maxCoarse {
			dst = s.drainLines(c, dst, from, to)
			continue
		}
		for line := from; line < to; line = line&^63 + 64 {
			fine := &s.rare.fine[line>>6]
			// Of a group that is part of a word, only its part.
			own := ^uint64(0) << (line & 63)
			if end := line&^63 + 64; to < end {
				own &= 1<<(to&63) - 1
			}
			for rest := *fine & own; rest != 0; rest = *fine & own {
				*fine &^= rest & -rest
				at := line&^63 + uint(bits.TrailingZeros64(rest))
				dst = s.drainLines(c, dst, at, at+1)
			}
		}
	}
	s.differing = 0
	return dst
}

func (s *shard) drainLines(c *counters, dst []uint32, from, to uint) []uint32 {
	first, last := int(from)*dirtWords, min(int(s.size), int(to)*dirtWords)
	if s.isArray {
		return s.drainArray(dst, first, last)
	}
	return s.drainTable(c, dst, first, last)
}
