package index

import (
	"slices"
	"sort"

	"github.com/summarycache/summarycache/digest"
)

// An addition is ascending positions of a peer to add to the table, which has none of them yet.
type addition struct {
	place     uint32
	bits      uint64 // m
	positions []uint64
}

// within returns the positions that have keys from first to last.
func (a addition) within(first, last uint64) addition {
	low, top := high(first, a.bits), high(last, a.bits)
	from := sort.Search(len(a.positions), func(i int) bool { return a.positions[i] >= low })
	to := sort.Search(len(a.positions), func(i int) bool { return a.positions[i] > top })
	a.positions = a.positions[from:to]
	return a
}

// mostInSegment bounds the positions of a peer in a segment. Segments that are expected to get more
// than half as many are split first, so more can only come from positions that were chosen.
const mostInSegment = 1 << 18

// A loading is a peer of which the table gets all positions. It has none of them yet.
type loading struct {
	addition
	filter *digest.Filter
	all    bool // addition has the last positions of filter
	buffer []uint64
	next   uint64 // the first key of what the table does not have yet
	done   bool
	err    error
}

// load adds the positions of all these filters, segment by segment: a segment is in the cache then, and
// is rewritten once for all of them. Some after others fail with errCrowd, after a part of their positions,
// if these are not distributed as hashing does.
func (t *table) load(all []*loading) {
	waiting := uint64(0) // positions of those whose turn comes in this segment
	for _, l := range all {
		waiting += l.filter.Ones()
	}
	for k := uint64(0); ; {
		end := t.at(k).last()
		rest := waiting
		for _, l := range all {
			rest -= l.filter.Ones()
			for !l.done && l.next <= end {
				l.err = t.loadSegment(l, rest)
				l.done = l.done || l.err != nil
			}
		}
		if end == ^uint64(0) {
			return
		}
		k = end + 1
	}
}

// loadSegment adds what a peer has in the next segment: one by one, or by a new segment, whichever takes less
// time. More positions of others follow, this many in all segments.
func (t *table) loadSegment(l *loading, follow uint64) error {
	m := l.bits
	s := t.at(l.next)
	if about := t.codesFor(l.filter.Ones(), m) >> s.depth; about > mostInSegment/2 {
		t.rebuild(s, t.linesFor(s, about))
		s = t.at(l.next)
	}
	end := s.last()
	top := high(end, m)
	if have := len(l.positions); !l.all && (have == 0 || l.positions[have-1] <= top) {
		l.buffer, l.all = appendBeyond(l.buffer[:0], l.filter, high(l.next, m), top, int(min(4096, l.filter.Ones()+1)))
		l.positions = l.buffer
	}
	n, _ := slices.BinarySearch(l.positions, top+1)
	if err := t.addTo(s, l.addition, n, follow>>s.depth); err != nil {
		return err
	}
	t.rest(n)
	if l.done = end == ^uint64(0); !l.done {
		l.next = end + 1
		added, _ := slices.BinarySearch(l.positions[:n], high(l.next, m)) // the last may have keys in the next segment too
		l.positions = l.positions[added:]
	}
	return nil
}

// appendBeyond appends the positions of f from first on, n at a time, until one is greater than last or
// there are more than mostInSegment. It reports whether the filter has no more.
func appendBeyond(dst []uint64, f *digest.Filter, first, last uint64, n int) (_ []uint64, all bool) {
	for {
		had := len(dst)
		dst = f.AppendPositions(dst, first, n)
		if len(dst) < had+n {
			return dst, true
		}
		if end := dst[len(dst)-1]; end > last || len(dst) > mostInSegment {
			return dst, false
		}
		first = dst[len(dst)-1] + 1
	}
}

// codesFor returns how many codes this many positions need, since some are in several lines.
func (t *table) codesFor(positions, m uint64) uint64 {
	return positions + uint64(float64(positions)*float64(t.words/lineWords)/float64(m))
}

// linesFor returns how many lines a segment should have to get this many more codes.
func (t *table) linesFor(s *segment, more uint64) uint64 {
	used := uint64(t.live()*float64(s.used)) + more
	if used <= uint64(s.limit()) {
		return uint64(s.lines)
	}
	full := float64(lineWords * s.shape.fields)
	return max(uint64(s.lines), uint64(float64(used)/(fillLines*loadedTo*full))+1)
}

// loadedTo is how full a new segment is, as a share of the limit at which it grows. If peers come one
// by one, each code is moved 1/(1-loadedTo) times. With 0.65 to 0.7 that is three times and not five:
// loading 64 peers took a tenth less time, hardly more than the noise, and 14 to 22 % more memory.
const loadedTo = 0.8

// If a segment has more than insertFrom times as many codes as it gets, they are inserted one by one;
// otherwise a new segment takes less time. With 1 or 4 nothing was faster.
const insertFrom = 2

// The writer rests after so much work: a thousand codes, or moved ones, which take less time each.
const (
	restAfter  = 8192
	movedAsOne = 8
)

// rest lets others use the index now and then. The caller looks for its segment anew.
func (t *table) rest(work int) {
	if t.work += work; t.work-t.rested >= restAfter && t.pause != nil {
		t.rested = t.work
		t.pause()
	}
}

// addTo adds the first n of an addition's positions to a segment. If that is rewritten, it gets room for as many
// as follow.
func (t *table) addTo(s *segment, a addition, n int, follow uint64) error {
	if n == 0 {
		return nil
	}
	more := t.codesFor(uint64(n), a.bits)
	lines := t.linesFor(s, more)
	if lines > uint64(s.lines) {
		more += follow
		lines = t.linesFor(s, more)
	}
	near := max(1, a.bits/max(1, lines<<s.depth)) // positions in a line
	for i := range max(0, n-maxPerLine) {
		if a.positions[i+maxPerLine]-a.positions[i] < near {
			return errCrowd
		}
	}
	if n > mostInSegment {
		return errCrowd
	}
	if lines == uint64(s.lines) && uint64(s.used)+more <= uint64(s.limit()) && insertFrom*more < uint64(s.codes) {
		t.insert(s, a, n)
		return nil
	}
	a.positions = a.positions[:n]
	t.work += int(s.codes) / movedAsOne
	t.rebuildWith(s, lines, a)
	return nil
}

// insert adds the first n of an addition's positions to a segment with room, code by code.
//
// To find the line to prefetch by the segment's scale, without the directory, took 46 to 47 ns a key
// instead of 48 to 50 with 64 peers of 10⁵ keys, but 112 to 120 instead of 101 with 1,000.
func (t *table) insert(s *segment, a addition, n int) {
	const ahead = 16
	step := ^uint64(0) / a.bits
	b := &s.shape.blocks[a.place]
	scale := s.scale(a.bits)
	for i, p := range a.positions[:n] {
		if i+ahead < len(a.positions) {
			t.prefetch(digest.Key(a.positions[i+ahead] * step)) // nearly its first key
		}
		line, last := s.linesOf(p, a.bits, scale)
		for ; line <= last; line++ {
			for !s.insert(line, a.place, b, p) {
				s = t.refresh(s)
			}
			t.codes++
		}
	}
}

// add puts the codes of an addition into the lines.
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
