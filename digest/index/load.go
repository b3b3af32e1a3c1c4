package index

import (
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

// A loading brings a filter into the table. Its positions come in order, so it goes
// through the segments in order, and puts codes into a segment where there is room, or
// writes it anew with them, whichever takes less.
type loading struct {
	*table
	addition // what is at hand, of which
	done     int
	filter   *digest.Filter
	next     uint64 // what is to come begins here; none if there is nothing
}

// load adds all positions. It fails with errCrowd, having added some, if they are not
// such as hashing gives. It ends, since each round finishes positions, or a segment, or
// splits one that is too small for them, after which none is.
func (l *loading) load() error {
	split := false
	for k := uint64(0); l.done < len(l.positions) || l.fetch(4096); {
		k = max(k, firstKey(l.positions[l.done], l.bits)) // a position may have begun before
		s := l.at(k)
		top := high(s.last(), l.bits)
		whole := l.take(top)
		if !whole && !split {
			about := l.codesFor(l.filter.Ones()) >> s.depth // there are for the segment
			if lines := l.linesFor(s, about); lines > uint64(s.lines) {
				l.rebuild(s, lines)
				split = true
				continue
			}
		}
		split = false
		rest := l.positions[l.done:]
		n := sort.Search(len(rest), func(i int) bool { return rest[i] > top })
		if err := l.addTo(s, rest[:n]); err != nil {
			return err
		}
		l.done += n
		if !whole {
			continue
		}
		if s.last() == ^uint64(0) {
			return nil
		}
		k = s.last() + 1
		if n > 0 && reachOf(rest[n-1], l.bits).last >= k {
			l.done-- // the next segment needs it, too
		}
	}
	return nil
}

// fetch brings n positions more to hand, or as many as there are. It returns false if
// there are none.
func (l *loading) fetch(n int) bool {
	if l.next == none {
		return false
	}
	l.positions = l.positions[:copy(l.positions, l.positions[l.done:])]
	l.done = 0
	had := len(l.positions)
	l.positions = l.filter.AppendPositions(l.positions, l.next, n)
	if len(l.positions) < had+n {
		l.next = none
		return len(l.positions) > had
	}
	l.next = l.positions[len(l.positions)-1] + 1
	return true
}

// mostAtHand bounds how many positions are at hand: more than there are in a segment,
// unless somebody chose them.
const mostAtHand = 1 << 17

// take brings positions to hand up to top. It returns false if there are too many.
func (l *loading) take(top uint64) bool {
	for l.next <= top {
		if len(l.positions)-l.done >= mostAtHand {
			return false
		}
		if !l.fetch(4096) {
			break
		}
	}
	return true
}

// codesFor returns how many codes so many positions take, as some are in several lines.
func (l *loading) codesFor(positions uint64) uint64 {
	return positions + uint64(float64(positions)*float64(l.words/lineWords)/float64(l.bits))
}

// linesFor returns how many lines a segment should have for so many codes more.
func (l *loading) linesFor(s *segment, more uint64) uint64 {
	used := uint64(l.live()*float64(s.used)) + more
	if used <= uint64(s.limit()) {
		return uint64(s.lines)
	}
	full := float64(lineWords * s.shape.fields)
	return max(uint64(s.lines), uint64(float64(used)/(fillLines*loadedTo*full))+1)
}

// loadedTo is how full a segment is made, of what makes it grow. Where peers come one by
// one, each code is moved 1/(1-loadedTo) times. From 0.65 to 0.7 that is three times and not
// five, and loading 64 peers took a tenth less, which the noise nearly hid, for 14 to 22 %
// more memory; insertFrom at 1 or 4 gained nothing.
const loadedTo = 0.8

// insertFrom is how many codes there are in a segment, for each that comes, if it takes
// less to write them one by one than to write the segment anew.
const insertFrom = 2

// addTo adds positions to a segment.
func (l *loading) addTo(s *segment, positions []uint64) error {
	if len(positions) == 0 {
		return nil
	}
	more := l.codesFor(uint64(len(positions)))
	lines := l.linesFor(s, more)
	near := max(1, l.bits/max(1, lines<<s.depth)) // positions in a line
	for i := range max(0, len(positions)-crowd) {
		if positions[i+crowd]-positions[i] < near {
			return errCrowd
		}
	}
	if lines == uint64(s.lines) && uint64(s.used)+more <= uint64(s.limit()) && insertFrom*more < uint64(s.codes) {
		l.insert(s, len(positions))
		return nil
	}
	a := l.addition
	a.positions = positions
	l.rebuildWith(s, lines, a)
	return nil
}

// insert adds the next n positions to a segment that has room, code by code.
func (l *loading) insert(s *segment, n int) {
	const ahead = 16
	step := ^uint64(0) / l.bits
	b := &s.shape.blocks[l.place]
	scale := s.scale(l.bits)
	for i, p := range l.positions[l.done:][:n] {
		if i := l.done + i + ahead; i < len(l.positions) {
			l.prefetch(digest.Key(l.positions[i] * step)) // nearly its first key
		}
		line, last := s.linesOf(p, l.bits, scale)
		for ; line <= last; line++ {
			for !s.insert(line, l.place, b, p) {
				s = l.refresh(s)
			}
			l.codes++
		}
	}
}

// add puts what is added into the lines.
func (m *migrator) add(a addition) {
	if len(a.positions) == 0 {
		return
	}
	b := &m.shape.blocks[a.place]
	scale := m.scale(a.bits)
	for _, p := range a.positions {
		line, last := m.linesOf(p, a.bits, scale)
		for ; line <= last; line++ {
			m.put(line, b.code(p))
		}
	}
}
