package index

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"sync/atomic"
)

// A shape defines the codes in the table of an [Index]. A code stands for one position of one peer:
// each peer owns a block of 2^low codes, and the lower bits of a code are those of the position. These
// bits are enough, since a line of the table is responsible for so few keys that two positions of a
// peer in one line never agree in them.
//
// So the denser the table, the shorter its codes. The sizes of the peers may differ: all their blocks
// together have about as many codes as there are in a line, divided by the false-positive rate.
//
// A block is assigned once in the life of a shape, to a place. A later peer at that place gets the same
// block if it has the same m.
type shape struct {
	// The fields for lookups come first, in one cache line.
	classes atomic.Pointer[[]class]
	ones    uint64 // the lowest bit of each field
	width   uint   // bits of a code
	granule uint   // blocks have at least 2^granule codes
	slots   []slot // by code>>granule; readers use those of codes that they found

	// The writer's:
	fields  uint    // codes in a word
	density uint64  // least number of lines over the whole key space
	blocks  []block // by place
	bottom  uint64  // all codes from here on are assigned
}

// A slot is the owner of 2^granule codes.
type slot struct {
	bits  uint64 // m of the peer; 0 if there is none
	place uint32 // of the peer in the view
	low   uint8
}

// A class is an m that some peers have, with the masks to compare their codes.
type class struct {
	bits uint64 // m
	lows uint64 // the part of each field that is compared
	tops uint64 // the bit above it
	low  uint
}

// A block is the range of the codes of one peer: from base to base + 2^low - 1.
type block struct {
	base  uint64
	low   uint
	class int
}

func (b *block) code(p uint64) uint64 { return b.base | b.rest(p) }

// rest returns the part of a position that is in its code.
func (b *block) rest(p uint64) uint64 { return p & (1<<b.low - 1) }

// widths are the possible widths of codes. Each leaves the top bit of a word free.
var widths = [...]uint{12, 15, 21, 31, 63}

// widestShared is the greatest width of codes with which positions are shared.
const widestShared = 31

// An owner is a peer that needs a block.
type owner struct {
	place uint32
	bits  uint64 // m
}

// lowBits returns how many bits distinguish the positions that keys of one line can have.
func (t owner) lowBits(density uint64) uint { return uint(bits.Len64(t.bits/density + 2)) }

// A plan has the parameters of a shape.
type plan struct {
	width, granule uint
	density        uint64
}

// planFor returns the plan that takes the least memory for a number of fields, in lines that are as full
// as they should be. Narrow codes need many lines to distinguish the positions of a peer, but more of
// them fit into a line. A change of the width rewrites the whole table. So codes become narrower than
// now only if there will be enough of them for a while.
func planFor(owners []owner, fields uint64, now uint) plan {
	best, least := plan{}, ^uint64(0)
	for _, width := range widths {
		lines := fields/uint64(lineWords*(63/width)) + 1
		spare := uint64(10) // one code in so many
		if width < now {
			spare = 3
		}
		density, ok := leastDensity(width, owners, min(least, 1<<50), spare)
		if cost := max(lines, density); ok && cost < least {
			least = cost
			density = max(density, lines-lines/8)
			best = plan{width, granuleFor(width, density, owners), density}
		}
	}
	return best
}

// leastDensity returns the smallest density below limit at which a width has enough codes, with one in
// spare of them unused.
func leastDensity(width uint, owners []owner, limit, spare uint64) (density uint64, ok bool) {
	n := sort.Search(bits.Len64(limit)*densitySteps, func(i int) bool {
		return fits(width, densityAt(i), owners, spare)
	})
	density = densityAt(n)
	return density, density < limit
}

// Densities are tried in steps of an eighth of an octave or so.
const densitySteps = 8

func densityAt(i int) uint64 {
	return (densitySteps + uint64(i%densitySteps)) << (i / densitySteps) / densitySteps
}

// fits reports whether a width has enough codes for owners, with one in spare of them unused.
func fits(width uint, density uint64, owners []owner, spare uint64) bool {
	granule := granuleFor(width, density, owners)
	room := uint64(1) << width
	room -= room/spare + 1<<granule // slot 0 is not used
	for _, t := range owners {
		low := max(granule, t.lowBits(density))
		if low >= width || 1<<low > room {
			return false
		}
		room -= 1 << low
	}
	return true
}

// granuleFor returns a granule fine enough for the smallest owner, unless the table of slots would be
// too large for the processor's cache.
func granuleFor(width uint, density uint64, owners []owner) uint {
	granule := width - min(width, 6)
	for _, t := range owners {
		granule = min(granule, t.lowBits(density))
	}
	slots := uint(bits.Len(uint(len(owners)))) + 3
	return max(granule, width-min(width, slots))
}

// newShape makes a shape in which all owners have blocks.
func newShape(p plan, owners []owner) *shape {
	s := &shape{
		width: p.width, fields: 63 / p.width, granule: p.granule, density: p.density,
		slots: make([]slot, 1<<(p.width-p.granule)), bottom: 1 << p.width,
	}
	for i := range s.fields {
		s.ones |= 1 << (i * s.width)
	}
	s.classes.Store(new([]class))
	// The largest first, so that alignment wastes no codes.
	for _, t := range slices.SortedFunc(slices.Values(owners), func(a, b owner) int { return cmp.Compare(b.bits, a.bits) }) {
		if !s.admit(t) {
			panic("digest: index: a plan without codes for all peers")
		}
	}
	return s
}

// admit assigns a block to t, or returns false if none is left.
func (s *shape) admit(t owner) bool {
	low := max(s.granule, t.lowBits(s.density))
	if int(t.place) < len(s.blocks) {
		if b := &s.blocks[t.place]; b.base != 0 && (*s.classes.Load())[b.class].bits == t.bits {
			return true // of the peer that had the place before
		}
	}
	if low >= s.width || s.bottom < 1<<low {
		return false
	}
	base := (s.bottom - 1<<low) &^ (1<<low - 1)
	if base < 1<<s.granule {
		return false // code 0 is a free field
	}
	s.bottom = base
	for i := range uint64(1) << (low - s.granule) {
		s.slots[base>>s.granule+i] = slot{t.bits, t.place, uint8(low)}
	}
	for len(s.blocks) <= int(t.place) {
		s.blocks = append(s.blocks, block{})
	}
	s.blocks[t.place] = block{base, low, s.classOf(t.bits, low)}
	return true
}

// classOf returns the class of m, and makes it if there is none.
func (s *shape) classOf(m uint64, low uint) int {
	if i := s.findClass(m); i >= 0 {
		return i
	}
	classes := append(slices.Clip(*s.classes.Load()), class{
		bits: m, lows: (1<<low - 1) * s.ones, tops: s.ones << low, low: low,
	})
	s.classes.Store(&classes)
	return len(classes) - 1
}

// findClass returns the class of m, or -1.
func (s *shape) findClass(m uint64) int {
	return slices.IndexFunc(*s.classes.Load(), func(c class) bool { return c.bits == m })
}

func (s *shape) bytes() int {
	return 128 + 16*cap(s.slots) + 24*cap(s.blocks) + 32*cap(*s.classes.Load())
}

// zeros returns the upper bit of each field of word that is zero.
func (s *shape) zeros(word uint64) uint64 {
	top := s.ones << (s.width - 1)
	below := top - s.ones
	return ^((word&below + below) | word) & top
}

// equal returns the upper bit of each field of word that is code.
func (s *shape) equal(word, code uint64) uint64 { return s.zeros(word ^ code*s.ones) }

// field returns where the field begins whose upper bit is the lowest of tops.
func (s *shape) field(tops uint64) uint {
	return uint(bits.TrailingZeros64(tops)) - (s.width - 1)
}

func (s *shape) codeMask() uint64 { return 1<<s.width - 1 }
