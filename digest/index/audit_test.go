package index

import (
	"maps"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// loop looks keys up in one filter after the other, for comparison.
type loop map[string]*digest.Filter

func (l loop) lookup(k digest.Key) []string {
	var peers []string
	for name, f := range l {
		if f.MayContain(k) {
			peers = append(peers, name)
		}
	}
	slices.Sort(peers)
	return peers
}

func namesOf(matches []Match) []string {
	var names []string
	for _, m := range matches {
		names = append(names, m.Peer)
	}
	slices.Sort(names)
	return names
}

func positionsOf(f *digest.Filter) map[uint64]bool {
	set := map[uint64]bool{}
	for _, p := range f.AppendPositions(nil, 0, int(f.Ones())) {
		set[p] = true
	}
	return set
}

// audit checks that the index has exactly the positions of the filters, each in all lines where
// it belongs, and that its counters are right.
func audit(t *testing.T, x *Index, filters loop) {
	t.Helper()
	if got, want := slices.Sorted(maps.Keys(x.peers)), slices.Sorted(maps.Keys(filters)); !slices.Equal(got, want) {
		t.Fatalf("peers %v, want %v", got, want)
	}
	want := map[uint32]*digest.Filter{}
	for name, f := range filters {
		e := x.peers[name]
		if e.layout == inTable {
			want[e.place] = f
		}
		if got := e.filter.Load(); got != f {
			t.Fatalf("%s has the filter %v, want %v", name, got.Version(), f.Version())
		}
	}
	auditTable(t, &x.table, want)
}

// A code is the entry for a position of a place in a line of a segment.
type code struct {
	segment, line uint64
	place         uint32
	position      uint64
}

func auditTable(t *testing.T, x *table, want map[uint32]*digest.Filter) {
	t.Helper()
	codes, words, segments := 0, 0, 0
	next := uint64(0)
	found := map[code]bool{}
	sets := map[uint32]map[uint64]bool{}
	for place, f := range want {
		sets[place] = positionsOf(f)
	}
	x.each(func(s *segment) {
		if s.first != next || s.shape != x.shape || uint64(s.lines)<<s.depth < x.shape.density {
			t.Fatalf("segment for %x begins at %x, has %d lines at depth %d for density %d", next, s.first, s.lines, s.depth, x.shape.density)
		}
		if uint64(s.lines) > x.maxLines {
			t.Fatalf("segment at %x has %d lines, want at most %d", s.first, s.lines, x.maxLines)
		}
		next = s.last() + 1
		segments++
		words += len(s.words)
		codes += int(s.codes)
		inSegment, used := 0, 0
		for line := range uint64(s.lines) {
			n, u := auditLine(t, x, s, line, sets, found)
			inSegment += n
			used += u
		}
		if inSegment != int(s.codes) || used != int(s.used) {
			t.Fatalf("segment at %x has %d codes and %d fields in use, its counters are %d and %d", s.first, inSegment, used, s.codes, s.used)
		}
	})
	// And all that should be there.
	for place, f := range want {
		for _, p := range f.AppendPositions(nil, 0, int(f.Ones())) {
			r := reachOf(p, f.Geometry().Bits)
			for k := r.first; ; {
				s := x.at(k)
				line := s.line(k)
				if !found[code{s.first, line, place, p}] {
					t.Fatalf("line %d of segment at %x lacks position %d of place %d", line, s.first, p, place)
				}
				last := s.last()
				if line+1 < uint64(s.lines) {
					last = s.start(line+1) - 1
				}
				if last >= r.last {
					break
				}
				k = last + 1
			}
		}
	}
	if codes != x.codes || words != x.words || segments != x.segments || next != 0 {
		t.Fatalf("%d codes in %d words of %d segments up to %x, the counters are %d, %d, %d", codes, words, segments, next, x.codes, x.words, x.segments)
	}
}

func auditLine(t *testing.T, x *table, s *segment, line uint64, want map[uint32]map[uint64]bool, found map[code]bool) (codes, used int) {
	t.Helper()
	low, end := s.start(line), s.last()
	if line+1 < uint64(s.lines) {
		end = s.start(line+1) - 1
	}
	if s.line(low) != line || s.line(end) != line || low != s.first && s.line(low-1) == line {
		t.Fatalf("line %d of segment at %x is not from %x to %x", line, s.first, low, end)
	}
	add := func(place uint32, rest uint64) {
		codes++
		b := s.shape.blocks[place]
		m := (*s.shape.classes.Load())[b.class].bits
		least := high(low, m)
		p := least + (rest-least)&(1<<b.low-1)
		id := code{s.first, line, place, p}
		if found[id] {
			t.Fatalf("line %d of segment at %x has position %d of place %d twice", line, s.first, p, place)
		}
		found[id] = true
		if x.gone[place] {
			return
		}
		if !want[place][p] {
			t.Fatalf("line %d of segment at %x has position %d of place %d, which the filter has not", line, s.first, p, place)
		}
	}
	for words, home := s.lineAt(line), true; words != nil; home = false {
		last := words
		words = nil
		for _, w := range last {
			switch {
			case w >= link:
				words = s.linked(w)
				used += int(s.shape.fields)
			case w >= special:
				if home {
					used += int(s.shape.fields)
				}
				class := s.classOf(w)
				rest := w & s.shape.codeMask()
				for place := range uint32(64 * s.bitmapWords) {
					if s.bitmap(w)[place/64]>>(place%64)&1 != 0 {
						if s.shape.blocks[place].class != class {
							t.Fatalf("place %d is in a row of class %d", place, class)
						}
						add(place, rest)
					}
				}
			default:
				for ; w != 0; w >>= s.shape.width {
					if c := w & s.shape.codeMask(); c != 0 {
						if home {
							used++
						}
						from := s.shape.slots[c>>s.shape.granule]
						add(from.place, s.shape.blocks[from.place].rest(c))
					}
				}
			}
		}
		if !home && words != nil {
			used -= int(s.shape.fields) // a link in what is linked to
		}
	}
	return codes, used
}
