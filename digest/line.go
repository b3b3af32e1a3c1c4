package digest

import (
	"math/bits"
	"unsafe"
)

// Tables consist of lines. A line is the 64 bytes that a processor fetches at once, so an
// operation waits for memory once. It has 20 slots, or 14 if positions are so far apart
// that they need more bits. A slot is the lower 16 bits of a position and a rest: the
// upper bits, whether the position is set in the frozen filter, and its count. The lower
// halves are side by side, so that all are compared at once.
//
// This is the narrow form, with three upper bits. The wide form has eleven, in
// rests of 16 bits that begin at wideRest.
type line struct {
	low  [narrowSlots]uint16
	rest [narrowSlots]uint8
	head uint32 // bits 0 to 19: slots that are taken; above, how many positions were put into later lines
}

const (
	perLine = 16 // of a shard's words

	slotCount  = 0xf    // the count
	slotFrozen = 1 << 4 // set in the frozen filter
	slotState  = slotCount | slotFrozen
	slotBits   = 5 // the position's upper bits are above them

	narrowSlots = 20
	narrowBits  = 19 // of a position
	wideSlots   = 14
	wideRest    = 32 // bytes from the beginning of the line

	lowBits   = 16
	lineTaken = 1<<narrowSlots - 1
	lineSpill = 1 << narrowSlots // in head, one position in a later line
	maxSpill  = 7                // at most so many lines after its own
)

// room returns the first free slot, or a number beyond the slots if none is free.
func (l *line) room() uint { return uint(bits.TrailingZeros32(^l.head)) }

// lower returns the lower half in a slot. Here and below, indices are not checked: that would
// cost a tenth of an operation.
func (l *line) lower(slot uint) *uint16 {
	return (*uint16)(unsafe.Add(unsafe.Pointer(l), 2*slot))
}

func (l *line) spilled() bool { return l.head >= lineSpill }

// lanes has the lowest bit of each of the lower halves in a word.
const lanes = 0x0001000100010001

// match returns a bit for each slot whose lower half may be that of x. Every slot that matches
// has its bit; if one does, others may have theirs by mistake. matchSlot returns the slot of
// the lowest bit.
func (l *line) match(x uint32) uint64 {
	w, all := l.words(), uint64(uint16(x))*lanes
	return zero16(w[0]^all)>>15 | zero16(w[1]^all)>>14 | zero16(w[2]^all)>>13 | zero16(w[3]^all)>>12 | zero16(w[4]^all)>>11
}

// zero16 returns the upper bit of each lane of 16 bits that is zero, and perhaps those of lanes
// above it.
func zero16(x uint64) uint64 { return (x - lanes) &^ x & (lanes << 15) }

func matchSlot(match uint64) uint {
	bit := uint(bits.TrailingZeros64(match))
	return bit&15*4 + (bit>>4 ^ laneFlip)
}

// laneFlip converts the place of a lower half in a word to its place in memory. It is 3 on
// big-endian machines, where the first one is in the highest bits.
var laneFlip = func() uint {
	l := line{low: [narrowSlots]uint16{1}}
	return uint(bits.TrailingZeros64(l.words()[0])) >> 4
}()

func (l *line) words() *[5]uint64 { return (*[5]uint64)(unsafe.Pointer(l)) }

// lines are the lines of one table.
type lines struct {
	base *uint32 // the first word: see shard
	size int32   // how many words there are
	wide bool
}

func (t *lines) len() int { return int(uint32(t.size) / perLine) }

// slots is how many a line has.
func (t *lines) slots() uint {
	if t.wide {
		return wideSlots
	}
	return narrowSlots
}

func (t *lines) at(i int) *line {
	return (*line)(unsafe.Add(unsafe.Pointer(t.base), i*(perLine*4)))
}

// rest returns a slot without its lower half.
func (t *lines) rest(l *line, slot uint) uint32 {
	if t.wide {
		return uint32(*(*uint16)(unsafe.Add(unsafe.Pointer(l), wideRest+2*slot)))
	}
	return uint32(*(*uint8)(unsafe.Add(unsafe.Pointer(&l.rest), slot)))
}

func (t *lines) setRest(l *line, slot uint, rest uint32) {
	if t.wide {
		*(*uint16)(unsafe.Add(unsafe.Pointer(l), wideRest+2*slot)) = uint16(rest)
	} else {
		*(*uint8)(unsafe.Add(unsafe.Pointer(&l.rest), slot)) = uint8(rest)
	}
}

// put puts a scattered position and its state into a free slot.
func (t *lines) put(l *line, slot uint, h, state uint32) {
	*l.lower(slot) = uint16(h)
	t.setRest(l, slot, h>>lowBits<<slotBits|state)
	l.head |= 1 << slot
}

// home is the line where a scattered position belongs.
func (t *lines) home(c *counters, h uint32) int {
	return int(uint64(h) * uint64(uint32(t.size)/perLine) >> (c.spanBits & 63))
}

func (t *lines) next(i int) int {
	if i++; i == t.len() {
		return 0
	}
	return i
}

// whole returns the scattered position in a slot. The narrow form lacks its uppermost bits.
// These follow from the line, since only positions of this line and of the maxSpill lines
// before it can be here.
func (t *lines) whole(c *counters, at int, slot uint) uint32 {
	l := t.at(at)
	part := t.rest(l, slot)>>slotBits<<lowBits | uint32(*l.lower(slot))
	if t.wide || c.spanBits <= narrowBits {
		return part
	}
	first, n := at-maxSpill, t.len()
	if first < 0 {
		first += n
	}
	from := uint32((uint64(first)<<c.spanBits + uint64(n) - 1) / uint64(n))
	return (from + (part-from)&(1<<narrowBits-1)) & (1<<c.spanBits - 1)
}
