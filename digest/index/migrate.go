package index

import (
	"math"
	"math/bits"
	"slices"
)

// A migrator builds the segment that replaces another one, or a part of it. It goes
// through the old lines in order, so that it need keep only those new lines at hand
// that the next old one may have something for. Its memory is used again.
type migrator struct {
	*segment          // being built
	old      *segment // of which
	gone     []bool   // by place: peers to leave out

	global uint64   // lines there would be if all segments were like this one
	before uint64   // of them, those of smaller keys
	scale  []uint64 // by place: 2^64·global/m, rounded down; 0 if unknown
	drafts []draft  // the lines at hand,
	next   uint64   // of which this is the first
	added  addition // of a peer that is being loaded
	begun  []uint64 // the lines that are done, and
	more   []uint64 // what follows all lines
	packed []uint64 // one line
	tagged []uint64
}

// A draft is what is to go into one line.
type draft struct {
	codes []uint64
	rows  []draftRow
}

type draftRow struct {
	class  int
	rest   uint64
	bitmap []uint64 // the old one
}

const (
	fillLines = 0.90 // of the fields of all lines, before there should be more lines
	lineSpare = 20   // words are free at first: one for so many of the lines',
	moreSpare = 4    // and one for so many of the others
)

// build makes a segment of what old has for the keys that begin with the depth
// bits that first begins with, and of what is added.
func (m *migrator) build(old *segment, sh *shape, first uint64, depth uint, lines uint64, gone []bool, added addition) *segment {
	m.segment = &segment{shape: sh, first: first, depth: depth, lines: lines, row: (len(gone) + 63) / 64}
	m.old, m.gone = old, gone
	m.global, m.before, m.next = lines<<depth, first>>(64-depth)*lines, 0
	m.scale = renew(m.scale, len(sh.blocks))
	m.added = added
	m.begun, m.more = m.begun[:0], m.more[:0]

	low := old.start(old.line(first))
	for line := old.line(first); line < old.lines && low <= m.last(); line++ {
		if low > first {
			m.finishTo(m.line(low))
		}
		top := old.last()
		if line+1 < old.lines {
			top = old.start(line+1) - 1
		}
		m.move(line, low, top)
		low = top + 1
	}
	m.finishTo(lines)
	return m.deliver()
}

func renew[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// move drafts what the old segment's line for the keys from low to top has.
func (m *migrator) move(line, low, top uint64) {
	words := m.old.home(line)
	sh := m.old.shape
next:
	for _, w := range words {
		switch {
		case w >= link:
			words = m.old.linked(w)
			goto next
		case w >= special:
			m.moveRow(w, low, top)
		default:
			for ; w != 0; w >>= sh.width {
				if code := w & sh.codeMask(); code != 0 {
					m.moveCode(&sh.slots[code>>sh.granule], code, low, top)
				}
			}
		}
	}
}

// moveCode drafts a peer's position, of which code has the lower bits, for the lines
// that are responsible for the keys that have it, if the old line was.
func (m *migrator) moveCode(from *slot, code, low, top uint64) {
	if m.gone[from.place] {
		return
	}
	least := high(low, from.bits)
	p := least + (code-least)&(1<<from.low-1)
	code = m.shape.blocks[from.place].code(p)
	scale := m.scaleOf(from.bits, from.place)
	line, rest := bits.Mul64(p, scale)
	// With a remainder that small, it is the line of all keys that have p, in spite
	// of what scale lacks. Only the least position may be in the old line before.
	if scale > 1 && p != least && rest < -scale-p-1 {
		if line -= m.before; line < m.lines {
			m.put(line, code)
		}
		return
	}
	line, end := m.reached(reachOf(p, from.bits), low, top)
	for ; line < end; line++ {
		m.put(line, code)
	}
}

// scaleOf returns what turns positions below size into lines, for the peer at place.
func (m *migrator) scaleOf(size uint64, place uint32) uint64 {
	scale := m.scale[place]
	if scale == 0 {
		scale = 1
		if m.global < size/2 {
			scale, _ = bits.Div64(m.global, 0, size)
		}
		m.scale[place] = scale
	}
	return scale
}

// reached returns the first line, and the one after the last, that are responsible
// for any of the keys in r and those from low to top, but not the one that already
// has what the old line before had of r.
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

// moveRow drafts a row.
func (m *migrator) moveRow(w, low, top uint64) {
	c := &(*m.old.shape.classes.Load())[m.old.classOf(w)]
	least := high(low, c.bits)
	p := least + (w-least)&(1<<c.low-1)
	bitmap := m.old.bitmap(w)
	class := m.shape.findClass(c.bits)
	line, end := m.reached(reachOf(p, c.bits), low, top)
	for ; line < end; line++ {
		if class >= 0 && class < 1<<classBits && m.shape.width <= widestRows {
			rest := p & (1<<(*m.shape.classes.Load())[class].low - 1)
			draft := m.draft(line)
			draft.rows = append(draft.rows, draftRow{class, rest, bitmap})
			continue
		}
		m.putAll(line, p, bitmap)
	}
}

// putAll drafts codes for those in a row.
func (m *migrator) putAll(line, p uint64, bitmap []uint64) {
	for i, w := range bitmap {
		for ; w != 0; w &= w - 1 {
			if place := 64*i + bits.TrailingZeros64(w); !m.gone[place] {
				m.put(line, m.shape.blocks[place].code(p))
			}
		}
	}
}

func (m *migrator) put(line, code uint64) {
	p := m.draft(line)
	p.codes = append(p.codes, code)
}

// draft returns the draft for a line that is at hand or after those.
func (m *migrator) draft(line uint64) *draft {
	i := int(line - m.next)
	for i >= len(m.drafts) {
		m.drafts = append(m.drafts, draft{})
	}
	return &m.drafts[i]
}

// finishTo writes the lines before end.
func (m *migrator) finishTo(end uint64) {
	m.add(end)
	n := int(end - m.next)
	for i := range n {
		if i >= len(m.drafts) {
			m.begun = append(m.begun, make([]uint64, lineWords)...)
			continue
		}
		p := &m.drafts[i]
		m.finishLine(p)
		p.codes, p.rows = p.codes[:0], p.rows[:0]
	}
	// The drafts that are left come first, in order; the empty ones are for later.
	for i := n; i < len(m.drafts); i++ {
		m.drafts[i-n], m.drafts[i] = m.drafts[i], m.drafts[i-n]
	}
	m.next = end
}

// finishLine writes the next line.
func (m *migrator) finishLine(p *draft) {
	at := len(m.begun)
	m.begun = append(m.begun, make([]uint64, lineWords)...)
	line := m.begun[at:]
	m.codes += len(p.codes)
	fields := int(m.shape.fields)
	if len(p.rows) == 0 && len(p.codes) <= lineWords*fields {
		m.used += len(p.codes)
		for i, code := range p.codes {
			// In turns, which takes no division.
			line[i%lineWords] |= code << (uint(i/lineWords) * m.shape.width)
		}
		return
	}
	m.packed = m.packed[:0]
	codes := m.oldRows(p)
	if enough := m.enough(); len(codes) >= enough && m.shape.width <= widestRows && m.mayShare(codes, enough) {
		codes = m.newRows(codes, enough)
	}
	m.used += min(lineWords*fields, len(m.packed)*fields+len(codes))
	m.pack(codes)
	if len(m.packed) <= lineWords {
		copy(line, m.packed)
		return
	}
	more := m.packed[lineWords-1:]
	copy(line, m.packed[:lineWords-1])
	line[lineWords-1] = linkTo(m.bitmaps()+len(m.more), len(more))
	m.more = append(m.more, more...)
}

// bitmaps is where the words in more will be.
func (m *migrator) bitmaps() int { return int(m.lines) * lineWords }

// enough is how many codes take more memory than a row.
func (m *migrator) enough() int { return 64*(m.row+1)/int(m.shape.width) + 2 }

// oldRows packs the rows that there were and that are still worth it, and returns
// the codes that are left.
func (m *migrator) oldRows(p *draft) []uint64 {
	sh := m.shape
	for _, row := range p.rows {
		at := len(m.more)
		m.more = append(m.more, make([]uint64, m.row)...)
		bitmap := m.more[at:]
		n := 0
		for i, w := range row.bitmap[:min(len(row.bitmap), m.row)] {
			for ; w != 0; w &= w - 1 {
				if place := 64*i + bits.TrailingZeros64(w); !m.gone[place] {
					bitmap[i] |= w & -w
					n++
				}
			}
		}
		m.codes += n
		if n < m.enough()/2 {
			for i, w := range bitmap {
				for ; w != 0; w &= w - 1 {
					p.codes = append(p.codes, sh.blocks[64*i+bits.TrailingZeros64(w)].code(row.rest))
				}
			}
			m.more = m.more[:at]
			continue
		}
		m.packed = append(m.packed, m.rowWord(row.class, row.rest, m.bitmaps()+at))
		if m.row > len(row.bitmap) {
			p.codes = m.absorb(p.codes, row, bitmap)
		}
	}
	return p.codes
}

// absorb puts those into a row who came when it was too short for them.
func (m *migrator) absorb(codes []uint64, row draftRow, bitmap []uint64) []uint64 {
	return slices.DeleteFunc(codes, func(code uint64) bool {
		place := m.shape.slots[code>>m.shape.granule].place
		b := &m.shape.blocks[place]
		if b.class != row.class || b.rest(code) != row.rest {
			return false
		}
		bitmap[place/64] |= 1 << (place % 64)
		return true
	})
}

// mayShare reports whether so many codes may mean the same position: whether so many
// agree in their lowest bits, which nearly always says no without a sort.
func (m *migrator) mayShare(codes []uint64, enough int) bool {
	var counts [64]uint8
	mask := uint64(1)<<min(6, m.shape.granule) - 1
	for i, code := range codes {
		if counts[code&mask]++; int(counts[code&mask]) >= enough || i == math.MaxUint8 {
			return true
		}
	}
	return false
}

// newRows packs rows for positions that many peers have, and returns the codes that
// are left.
func (m *migrator) newRows(codes []uint64, enough int) []uint64 {
	const placeBits = 24
	sh := m.shape
	m.tagged = m.tagged[:0]
	for _, code := range codes {
		place := sh.slots[code>>sh.granule].place
		b := &sh.blocks[place]
		m.tagged = append(m.tagged, (uint64(b.class)<<sh.width|b.rest(code))<<placeBits|uint64(place))
	}
	slices.Sort(m.tagged)
	codes = codes[:0]
	for rest := m.tagged; len(rest) > 0; {
		position := rest[0] >> placeBits
		n := 1
		for n < len(rest) && rest[n]>>placeBits == position {
			n++
		}
		class := int(position >> sh.width)
		if n < enough || class >= 1<<classBits {
			for _, c := range rest[:n] {
				codes = append(codes, sh.blocks[c&(1<<placeBits-1)].code(position))
			}
		} else {
			at := len(m.more)
			m.packed = append(m.packed, m.rowWord(class, position&sh.codeMask(), m.bitmaps()+at))
			m.more = append(m.more, make([]uint64, m.row)...)
			for _, c := range rest[:n] {
				place := c & (1<<placeBits - 1)
				m.more[at+int(place/64)] |= 1 << (place % 64)
			}
		}
		rest = rest[n:]
	}
	return codes
}

func (m *migrator) pack(codes []uint64) {
	word, shift := uint64(0), uint(0)
	for _, code := range codes {
		if word |= code << shift; shift+2*m.shape.width > 63 {
			m.packed = append(m.packed, word)
			word, shift = 0, 0
			continue
		}
		shift += m.shape.width
	}
	if word != 0 {
		m.packed = append(m.packed, word)
	}
}

// deliver gives the segment its memory.
func (m *migrator) deliver() *segment {
	s := m.segment
	s.limit = int(fillLines * float64(len(m.begun)*int(s.shape.fields)))
	s.free = len(m.begun) + len(m.more)
	s.words = slices.Grow([]uint64(nil), s.free+max(16, len(m.begun)/lineSpare+len(m.more)/moreSpare))
	s.words = s.words[:cap(s.words)] // what the allocator gives in any case
	copy(s.words, m.begun)
	copy(s.words[len(m.begun):], m.more)
	m.segment, m.old, m.gone, m.added = nil, nil, nil, addition{}
	if len(m.drafts) > 64 {
		m.drafts = nil // an old line had something for very many
	}
	return s
}

func (m *migrator) bytes() int {
	n := 8 * (cap(m.scale) + cap(m.begun) + cap(m.more) + cap(m.packed) + cap(m.tagged))
	for _, p := range m.drafts[:cap(m.drafts)] {
		n += 48 + 8*cap(p.codes) + 40*cap(p.rows)
	}
	return n
}

// high returns the position in [0, m) of a key.
func high(k, m uint64) uint64 {
	p, _ := bits.Mul64(k, m)
	return p
}

// reach is the keys that have one position.
type reach struct{ first, last uint64 }

func reachOf(p, m uint64) reach { return reach{firstKey(p, m), firstKey(p+1, m) - 1} }

// firstKey returns the smallest key whose position in [0, m) is p or more: p·2^64/m,
// rounded up. For p = m that is 2^64, hence 0.
func firstKey(p, m uint64) uint64 {
	if p == m {
		return 0
	}
	q, r := bits.Div64(p, 0, m)
	if r != 0 {
		q++
	}
	return q
}
