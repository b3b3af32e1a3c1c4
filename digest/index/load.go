package index

import (
	"math/bits"
	"sort"

	"github.com/summarycache/summarycache/digest"
)

// An addition is ascending positions of a peer that are to go into the table, where it
// has none of them yet.
type addition struct {
	place     uint32
	bits      uint64 // m
	positions []uint64
}

// within returns what of it has keys from first to last.
func (a addition) within(first, last uint64) addition {
	low, top := high(first, a.bits), high(last, a.bits)
	from := sort.Search(len(a.positions), func(i int) bool { return a.positions[i] >= low })
	to := sort.Search(len(a.positions), func(i int) bool { return a.positions[i] > top })
	a.positions = a.positions[from:to]
	return a
}

// A loading brings a filter into the table.
type loading struct {
	*table
	addition // what is at hand
	filter   *digest.Filter
	next     uint64 // what is to come begins here
}

// mergeFrom says how a filter is loaded: if at least one code in so many would be its,
// all segments are written anew, in order; otherwise codes are added one by one, which
// then takes less.
const mergeFrom = 6

// load adds all positions. It fails with errCrowd, having added some, if they are not
// such as hashing gives.
func (l *loading) load() error {
	if uint64(l.codes) < mergeFrom*l.filter.Ones() {
		return l.merge()
	}
	for l.fetch(4096) {
		if err := l.flip(l.place, l.bits, l.positions); err != nil {
			return err
		}
		l.positions = l.positions[:0]
	}
	return nil
}

// fetch brings n positions more to hand, or as many as there are. It returns false if
// there are none.
func (l *loading) fetch(n int) bool {
	had := len(l.positions)
	l.positions = l.filter.AppendPositions(l.positions, l.next, n)
	if len(l.positions) == had {
		return false
	}
	l.next = l.positions[len(l.positions)-1] + 1
	return true
}

// mostAtHand bounds how many positions are at hand: more than there are in a segment,
// unless somebody chose them.
const mostAtHand = 1 << 17

// merge adds segment by segment. It ends, since each round either finishes positions or
// splits a segment that is too small for them, after which none is.
func (l *loading) merge() error {
	for k, split := uint64(0), false; ; {
		s := l.at(k)
		lines := l.linesFor(s, l.filter.Ones()>>s.depth) // about what there is for the segment
		if lines > l.mostLines() && lines > s.lines && !split {
			l.rebuild(s, lines)
			split = true
			continue
		}
		split = false
		whole := l.take(high(s.last(), l.bits))
		if err := l.addTo(s, l.within(s.first, s.last()), lines); err != nil {
			return err
		}
		l.drop(s.last())
		switch {
		case !whole:
			k = s.first
		case s.last() == ^uint64(0):
			return nil
		default:
			k = s.last() + 1
		}
	}
}

// linesFor returns how many lines a segment should have for so many positions more.
func (l *loading) linesFor(s *segment, more uint64) uint64 {
	used := uint64(l.live()*float64(s.used)) + more
	if used <= uint64(s.limit) {
		return s.lines
	}
	full := float64(lineWords * s.shape.fields)
	return max(s.lines, uint64(float64(used)/(fillLines*loadedTo*full))+1)
}

// loadedTo is how full a segment is made, of what makes it grow: as full as when it has
// grown.
const loadedTo = 0.875

// take brings positions to hand up to top. It returns false if there are too many.
func (l *loading) take(top uint64) bool {
	for len(l.positions) < mostAtHand {
		if !l.fetch(512) || l.next > top {
			return true
		}
	}
	return false
}

// drop drops what is at hand and has no key after last.
func (l *loading) drop(last uint64) {
	p := high(last, l.bits)
	n := sort.Search(len(l.positions), func(i int) bool { return l.positions[i] >= p })
	if n < len(l.positions) && l.positions[n] == p && reachOf(p, l.bits).last <= last {
		n++
	}
	l.positions = l.positions[:copy(l.positions, l.positions[n:])]
}

// addTo writes a segment anew with positions more.
func (l *loading) addTo(s *segment, a addition, lines uint64) error {
	if len(a.positions) == 0 {
		return nil
	}
	near := max(1, a.bits/max(1, lines<<s.depth)) // positions in a line
	for i := range max(0, len(a.positions)-crowd) {
		if a.positions[i+crowd]-a.positions[i] < near {
			return errCrowd
		}
	}
	l.rebuildWith(s, lines, a)
	return nil
}

// add drafts what is added to the lines before end.
func (m *migrator) add(end uint64) {
	a := &m.added
	if len(a.positions) == 0 {
		return
	}
	b := &m.shape.blocks[a.place]
	scale := m.scaleOf(a.bits, a.place)
	for i, p := range a.positions {
		// As in moveCode, most positions belong to one line, which needs no division.
		line, rest := bits.Mul64(p, scale)
		line -= m.before
		last := line
		if scale == 1 || rest >= -scale-p-1 || line >= m.lines {
			r := reachOf(p, a.bits)
			line, last = m.line(max(r.first, m.first)), m.line(min(r.last, m.last()))
		}
		if line >= end {
			a.positions = a.positions[i:]
			return
		}
		for ; line <= last; line++ {
			m.put(line, b.code(p))
		}
	}
	a.positions = nil
}
