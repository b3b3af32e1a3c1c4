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
	lines                 // the words of the table or the array: see words
	room       int32      // slots that may be taken before a table grows
	keys       int32      // whose first position is here
	differing  int32      // positions that differ from the frozen filter
	groupShift uint8
	isArray    bool
	dirty      uint64     // bit g: something differs in lines [g<<groupShift, (g+1)<<groupShift)
	sum        uint64     // of mix over the keys: see Verify
	rare       *rareState // or nil
}

// words returns the table or the array.
func (s *shard) words() []uint32 { return unsafe.Slice(s.base, s.size) }

// word returns a word of it. An index that is checked, or a slice that is made,
// costs a tenth of an operation.
func (s *shard) word(i int) *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(s.base), i*4))
}

// rareState is what few shards, or few operations, need.
type rareState struct {
	fine      []uint64 // of large shards, a bit for every line: a second dirty
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

// bump adds one to a counter, and counts those that are stuck by it.
func (s *shard) bump(c *counters, rel uint32) {
	if s.increment(c, rel) == maxCount-1 {
		s.rarely().saturated++
	}
}

// increment adds one to a counter, unless it is stuck, and returns what it was.
func (s *shard) increment(c *counters, rel uint32) uint8 {
	if s.isArray {
		return s.arrayIncrement(rel)
	}
	return s.tableIncrement(c, rel)
}

// decrement takes one from a counter, unless it is stuck, and returns what it
// was. It leaves zero alone.
func (s *shard) decrement(c *counters, rel uint32) uint8 {
	if s.isArray {
		return s.arrayDecrement(rel)
	}
	return s.tableDecrement(c, rel)
}

// resize gives the shard fresh words, none of them dirty.
func (s *shard) resize(words int) {
	fresh := make([]uint32, words)
	s.base, s.size = &fresh[0], int32(words)
	s.dirty = 0
	lines := (words + perLine - 1) / perLine
	s.groupShift = uint8(max(6, bits.Len(uint(lines-1))) - 6)
	if s.groupShift > maxCoarse {
		s.rarely().fine = make([]uint64, (lines-1)>>6+1)
	}
}

// maxCoarse is the groupShift up to which all lines of a group are looked at.
const maxCoarse = 1

// mark notes that a line holds a position that differs.
func (s *shard) mark(at int) {
	line := uint(at)
	s.dirty |= 1 << (line >> s.groupShift & 63)
	if s.groupShift > maxCoarse {
		s.rare.fine[line>>6] |= 1 << (line & 63)
	}
}

// drain appends the positions that differ from the last frozen filter, each as
// rel<<1 with the low bit saying whether it is set now, in no order, and makes
// the present contents the frozen ones.
func (s *shard) drain(c *counters, dst []uint32) []uint32 {
	lines := (uint(s.size) + perLine - 1) / perLine
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
	if s.isArray {
		return s.drainArray(dst, int(from)*perLine, min(int(s.size), int(to)*perLine))
	}
	return s.drainTable(c, dst, int(from), int(to))
}
