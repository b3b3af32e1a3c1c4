package index

import (
	"math/bits"
	"slices"
)

// A migrator builds the segment that replaces another one, or a part of it. It first moves the codes of
// the old lines into the new ones, and then adds those of an addition. Finally it lays out the lines
// that have more codes than fields (lines.go). Its memory is reused.
type migrator struct {
	*segment          // being built
	old      *segment // to be replaced
	gone     []bool   // by place: peers to omit
	added    bool     // whether there is an addition

	scales []uint64 // by place; see scaleOf
	begun  []uint64 // the lines
	counts []uint32 // by line: its number of codes
	beyond []uint32 // by line: index in extras of the list of codes beyond its fields
	extras []extra
	more   []uint64 // the words after all lines
	packed []uint64 // one line
	list   []uint64 // its codes
	tagged []uint64
}

// An extra is a code beyond a line's fields, or a shared position.
type extra struct {
	next   uint32   // in the line's list; 0 at the end
	class  int32    // of a shared position
	code   uint64   // or the part of a shared position
	bitmap []uint64 // of a shared position: the old one
}

const (
	fillLines = 0.90 // share of the fields of all lines in use at which a segment gets more lines
	lineSpare = 9    // a new segment has one free word for this many words of lines,
	moreSpare = 4    // and one for this many other words
)

// build builds a segment of the codes that old has for the keys with a prefix, the first depth bits of
// first, and of the addition.
func (m *migrator) build(old *segment, sh *shape, first uint64, depth uint8, lines uint64, gone []bool, added addition) *segment {
	m.segment = &segment{shape: sh, first: first, depth: depth, lines: uint32(lines), bitmapWords: uint32(len(gone)+63) / 64}
	m.old, m.gone, m.added = old, gone, len(added.positions) > 0
	m.scales = renew(m.scales, len(gone))
	m.begun = renew(m.begun, int(lines)*lineWords)
	m.counts = renew(m.counts, int(lines))
	m.beyond = renew(m.beyond, int(lines))
	m.extras = append(m.extras[:0], extra{}) // index 0 means none
	m.more = m.more[:0]

	low := old.start(old.line(first))
	for line := old.line(first); line < uint64(old.lines) && low <= m.last(); line++ {
		top := old.last()
		if line+1 < uint64(old.lines) {
			top = old.start(line+1) - 1
		}
		m.move(line, low, top)
		low = top + 1
	}
	m.add(added)
	m.layOut()
	return m.deliver()
}

func renew[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// move puts the codes of the old segment's line for the keys from low to top into new lines.
func (m *migrator) move(line, low, top uint64) {
	words := m.old.lineAt(line)
	sh := m.old.shape
next:
	for _, w := range words {
		switch {
		case w >= link:
			words = m.old.linked(w)
			goto next
		case w >= special:
			m.moveShared(w, low, top)
		default:
			for ; w != 0; w >>= sh.width {
				if code := w & sh.codeMask(); code != 0 {
					m.moveCode(&sh.slots[code>>sh.granule], code, low, top)
				}
			}
		}
	}
}

// moveCode puts a peer's position, whose lower bits are those of code, into the lines for those of its
// keys that the old line had.
func (m *migrator) moveCode(from *slot, code, low, top uint64) {
	scale := m.scales[from.place]
	if scale <= leftOut {
		if scale = m.scaleOf(from.bits, from.place); scale == leftOut {
			return
		}
	}
	least := high(low, from.bits)
	p := least + (code-least)&(1<<from.low-1)
	if m.shape != m.old.shape {
		code = m.shape.blocks[from.place].code(p)
	}
	// Only the least position may be in the old line before.
	if line, sure := m.lineOf(p, scale); sure && p != least {
		if line < uint64(m.lines) {
			m.put(line, code)
		}
		return
	}
	line, end := m.reached(reachOf(p, from.bits), low, top)
	for ; line < end; line++ {
		m.put(line, code)
	}
}

// Values instead of a scale: not computed yet, or the peer is omitted.
const (
	unknown = 0
	leftOut = 2 // scales are 1, or greater
)

// scaleOf returns the factor from positions below size to lines, for the peer at place.
func (m *migrator) scaleOf(size uint64, place uint32) uint64 {
	if m.scales[place] == unknown {
		m.scales[place] = m.scale(size)
		if m.gone[place] {
			m.scales[place] = leftOut
		}
	}
	return m.scales[place]
}

// reached returns the lines, from line to before end, that are responsible for keys of r from low to
// top. It omits a line that has got the position already, from the old line before.
func (m *migrator) reached(r reach, low, top uint64) (line, end uint64) {
	from, to := max(r.first, low, m.first), min(r.last, top, m.last())
	if from > to {
		return 0, 0
	}
	line = m.line(from)
	if r.first < low && low > m.first && m.line(low-1) == line {
		line++
	}
	return line, m.line(to) + 1
}

// moveShared puts a shared position into new lines.
func (m *migrator) moveShared(w, low, top uint64) {
	c := &(*m.old.shape.classes.Load())[m.old.classOf(w)]
	least := high(low, c.bits)
	p := least + (w-least)&(1<<c.low-1)
	bitmap := m.old.bitmap(w)
	class := m.shape.findClass(c.bits)
	line, end := m.reached(reachOf(p, c.bits), low, top)
	for ; line < end; line++ {
		if class >= 0 && class < 1<<classBits && m.shape.width <= widestShared {
			rest := p & (1<<(*m.shape.classes.Load())[class].low - 1)
			m.putBeyond(line, extra{class: int32(class), code: rest, bitmap: bitmap})
			continue
		}
		m.putAll(line, p, bitmap)
	}
}

// putAll puts the codes of the peers of a bitmap into a line.
func (m *migrator) putAll(line, p uint64, bitmap []uint64) {
	for i, w := range bitmap {
		for ; w != 0; w &= w - 1 {
			if place := 64*i + bits.TrailingZeros64(w); !m.gone[place] {
				m.put(line, m.shape.blocks[place].code(p))
			}
		}
	}
}

// put puts a code into a line.
func (m *migrator) put(line, code uint64) {
	n := m.counts[line]
	m.counts[line] = n + 1
	if field := uint(n / lineWords); field < m.shape.fields {
		// Words take turns, so that no division by the number of fields is needed.
		m.begun[line*lineWords+uint64(n%lineWords)] |= code << (field * m.shape.width)
		return
	}
	m.putBeyond(line, extra{code: code})
}

func (m *migrator) putBeyond(line uint64, e extra) {
	e.next = m.beyond[line]
	m.beyond[line] = uint32(len(m.extras))
	m.extras = append(m.extras, e)
}
