package digest

import (
	"math/bits"
	"sync"
	"unsafe"
)

// maxCount is where a counter stops. A counter that has reached it no longer knows how many
// keys have its position, so it is never decremented again. The position stays set until the
// filter is rebuilt, which costs false positives but never a false negative.
const maxCount = 15

// A shard counts the keys on each position of one range; its positions are relative to the
// range's beginning. At first it is a table of the counts that are not zero (table.go). It
// becomes an array of counters once that is smaller (array.go). Each position has a bit: in
// a table, whether it is set in the last frozen filter; in an array, whether it differs from
// it. Each line has a bit that says whether it may have positions that differ, so that freezing
// looks at no other line.
//
// Apart from the counter, an operation touches one cache line, so cores can work on
// different shards at once.
type shard struct {
	mu         sync.Mutex // guards everything
	lines                 // of the table, or the words of the array
	room       int32      // slots that may be taken before a table grows
	keys       int32      // keys whose first position is here
	frozenKeys int32      // those of the last freeze
	differing  int32      // positions that differ from the frozen filter
	groupShift uint8
	isArray    bool
	written    bool   // since the last freeze
	dirty      uint64 // bit g: a line of [g<<groupShift, (g+1)<<groupShift) is marked
	saturated  int32
}

func (s *shard) words() []uint32 { return unsafe.Slice(s.base, s.size) }

// count returns how many keys have position rel.
func (s *shard) count(c *counters, rel uint32) uint8 {
	if s.isArray {
		return s.arrayCount(rel)
	}
	_, _, _, rest := s.find(c, c.scatter(rel))
	return uint8(rest & slotCount)
}

// bump is increment. It also counts the counters that become stuck.
func (s *shard) bump(c *counters, rel uint32) {
	if s.increment(c, rel) == maxCount-1 {
		s.saturated++
	}
}

// increment adds one to a counter, unless it is stuck, and returns what it was.
func (s *shard) increment(c *counters, rel uint32) (was uint8) {
	before := s.differing
	if s.isArray {
		was = s.arrayIncrement(rel)
	} else {
		was = s.tableIncrement(c, rel)
	}
	c.differs(before, s.differing)
	return was
}

// decrement takes one from a counter, unless it is stuck, and returns what it
// was. It leaves zero alone.
func (s *shard) decrement(c *counters, rel uint32) (was uint8) {
	before := s.differing
	if s.isArray {
		was = s.arrayDecrement(rel)
	} else {
		was = s.tableDecrement(c, rel)
	}
	c.differs(before, s.differing)
	return was
}

// exactLines is up to how many lines each has its own bit in dirty. Beyond that, a bit of dirty
// stands for a group of lines, and the marks behind the words of the shard have a bit for each.
const exactLines = 64

// resize gives the shard fresh words, none of which are marked.
func (s *shard) resize(words int) {
	marks := 0
	s.groupShift = 0
	if n := words / perLine; n > exactLines {
		marks = (n + 31) / 32
		s.groupShift = uint8(max(bits.Len(uint(n-1))-6, 5)) // whole words of marks
	}
	fresh := make([]uint32, words+marks)
	s.base, s.size = &fresh[0], int32(words)
	s.dirty = 0
}

// marks returns the words that have a bit for each line.
func (s *shard) marks() []uint32 {
	return unsafe.Slice(s.base, int(s.size)+(s.len()+31)/32)[s.size:]
}

// mark records that a line has a position that differs.
func (s *shard) mark(at int) {
	s.dirty |= 1 << (at >> s.groupShift & 63)
	if s.groupShift > 0 {
		s.marks()[at>>5] |= 1 << (at & 31)
	}
}

// marked yields the marked lines, in order, and takes the marks away. A loop over it must not end
// early.
func (s *shard) marked(yield func(at int) bool) {
	for s.dirty != 0 {
		group := bits.TrailingZeros64(s.dirty)
		s.dirty &= s.dirty - 1
		if s.groupShift == 0 {
			yield(group)
			continue
		}
		marks := s.marks()
		for i := group << s.groupShift >> 5; i < min(len(marks), (group+1)<<s.groupShift>>5); i++ {
			for word := marks[i]; word != 0; word &= word - 1 {
				yield(i<<5 + bits.TrailingZeros32(word))
			}
			marks[i] = 0
		}
	}
}

// drain appends the positions that differ from the last frozen filter, each as
// rel<<1 with the low bit saying whether it is set now, in no order, and makes
// the present contents the frozen ones. It reads a line only if a position of it has changed
// since the last time.
func (s *shard) drain(c *counters, dst []uint32) []uint32 {
	for at := range s.marked {
		if s.isArray {
			dst = s.drainArray(dst, at*perLine, (at+1)*perLine)
		} else {
			dst = s.drainTable(c, dst, at)
		}
	}
	s.differing = 0
	return dst
}
