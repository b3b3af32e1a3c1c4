package index

import (
	"math"
	"math/bits"
	"slices"
)

// layOut lays out the lines that have more codes than fields.
func (m *migrator) layOut() {
	for line, n := range m.counts {
		if m.beyond[line] != 0 {
			m.layOutLine(line, int(n))
			continue
		}
		m.codes += int32(n)
		m.used += int32(n)
	}
}

// layOutLine lays out a line with n codes and possibly shared positions.
func (m *migrator) layOutLine(line, n int) {
	fields := int(m.shape.fields)
	words := m.begun[line*lineWords:][:lineWords]
	m.list, m.packed = m.list[:0], m.packed[:0]
	for _, w := range words {
		for ; w != 0; w >>= m.shape.width {
			m.list = append(m.list, w&m.shape.codeMask())
		}
	}
	clear(words)
	m.codes += int32(n)
	for i := m.beyond[line]; i != 0; i = m.extras[i].next {
		if e := &m.extras[i]; e.bitmap == nil {
			m.list = append(m.list, e.code)
		}
	}
	for i := m.beyond[line]; i != 0; i = m.extras[i].next {
		if e := &m.extras[i]; e.bitmap != nil {
			m.keepShared(e)
		}
	}
	codes := m.list
	if enough := m.enough(); len(codes) >= enough && m.shape.width <= widestShared && m.mayShare(codes, enough) {
		codes = m.share(codes, enough)
	}
	m.used += int32(min(lineWords*fields, len(m.packed)*fields+len(codes)))
	m.pack(codes)
	if len(m.packed) <= lineWords {
		copy(words, m.packed)
		return
	}
	more := m.packed[lineWords-1:]
	copy(words, m.packed[:lineWords-1])
	words[lineWords-1] = linkTo(m.bitmaps()+len(m.more), len(more))
	m.more = append(m.more, more...)
}

// bitmaps returns the future offset of the words in more.
func (m *migrator) bitmaps() int { return int(m.lines) * lineWords }

// enough returns how many codes take more memory than a shared position.
func (m *migrator) enough() int { return 64*int(m.bitmapWords+1)/int(m.shape.width) + 2 }

// keepShared packs a position that was shared before, if enough peers still have it. Otherwise it adds
// their codes to the list.
func (m *migrator) keepShared(old *extra) {
	at := len(m.more)
	m.more = append(m.more, make([]uint64, m.bitmapWords)...)
	bitmap := m.more[at:]
	n := 0
	for i, w := range old.bitmap[:min(len(old.bitmap), len(bitmap))] {
		for ; w != 0; w &= w - 1 {
			if place := 64*i + bits.TrailingZeros64(w); !m.gone[place] {
				bitmap[i] |= w & -w
				n++
			}
		}
	}
	m.codes += int32(n)
	if n < m.enough()/2 {
		for i, w := range bitmap {
			for ; w != 0; w &= w - 1 {
				m.list = append(m.list, m.shape.blocks[64*i+bits.TrailingZeros64(w)].code(old.code))
			}
		}
		m.more = m.more[:at]
		return
	}
	m.packed = append(m.packed, m.sharedWord(int(old.class), old.code, m.bitmaps()+at))
	if len(bitmap) > len(old.bitmap) || m.added {
		m.absorb(old, bitmap)
	}
}

// absorb moves codes of a shared position from the list into its bitmap: those of a peer that is being
// added, and of peers beyond the end of the old bitmap.
func (m *migrator) absorb(old *extra, bitmap []uint64) {
	m.list = slices.DeleteFunc(m.list, func(code uint64) bool {
		place := m.shape.slots[code>>m.shape.granule].place
		b := &m.shape.blocks[place]
		if b.class != int(old.class) || b.rest(code) != old.code {
			return false
		}
		bitmap[place/64] |= 1 << (place % 64)
		return true
	})
}

// mayShare reports whether enough codes to share may stand for the same position, because that many
// agree in their lowest bits. It nearly always excludes that without a sort.
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

// share packs the positions that enough peers have as shared ones, and returns the other codes.
func (m *migrator) share(codes []uint64, enough int) []uint64 {
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
			m.packed = append(m.packed, m.sharedWord(class, position&sh.codeMask(), m.bitmaps()+at))
			m.more = append(m.more, make([]uint64, m.bitmapWords)...)
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

// deliver copies the words into the memory of the segment, and returns it.
func (m *migrator) deliver() *segment {
	s := m.segment
	used := len(m.begun) + len(m.more)
	s.free = int32(used)
	s.words = slices.Grow([]uint64(nil), used+max(16, len(m.begun)/lineSpare+len(m.more)/moreSpare))
	s.words = s.words[:cap(s.words)] // the allocator rounds up
	copy(s.words, m.begun)
	copy(s.words[len(m.begun):], m.more)
	m.segment, m.old, m.gone = nil, nil, nil
	clear(m.extras) // drop references
	if cap(m.extras) > 1<<16 {
		m.extras = nil // unusually many
	}
	return s
}

func (m *migrator) bytes() int {
	return 8*(cap(m.scales)+cap(m.begun)+cap(m.more)+cap(m.packed)+cap(m.list)+cap(m.tagged)) +
		4*(cap(m.counts)+cap(m.beyond)) + 40*cap(m.extras)
}
