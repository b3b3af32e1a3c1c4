package digest

import (
	"fmt"
	"testing"
)

// spanned returns counters whose shards have 2^spanBits positions.
func spanned(t *testing.T, spanBits uint) *counters {
	t.Helper()
	g := Geometry{Bits: 1 << (spanBits + shardBits), Hashes: 1}
	if spanBits < fewSpanBits {
		g.Bits = 1 << (spanBits + fewShardBits)
	}
	c := newCounters(g)
	if c.spanBits != spanBits {
		t.Fatalf("shards of %v have 2^%d positions, want 2^%d", g, c.spanBits, spanBits)
	}
	return c
}

// tableOf returns a shard of 2^spanBits positions with n empty lines, wide or narrow.
func tableOf(t *testing.T, spanBits uint, n int, wide bool) (*counters, *shard) {
	t.Helper()
	c := spanned(t, spanBits)
	s := &c.shards[0]
	s.resize(n * perLine)
	s.wide = wide
	s.room = int32(n * int(s.slots()) * 5 / 6)
	return c, s
}

// homed returns the i-th of the scattered positions whose home is line at.
func homed(c *counters, s *shard, at, i int) uint32 {
	return uint32((uint64(at)<<c.spanBits+uint64(s.len())-1)/uint64(s.len())) + uint32(i)
}

// overflow fills a line until one position is in the next line. It returns all positions.
func overflow(c *counters, s *shard, at int) (held []uint32) {
	for i := 0; ; i++ {
		h := homed(c, s, at, i)
		s.increment(c, c.gather(h))
		held = append(held, h)
		if s.at(at).spilled() {
			return held
		}
	}
}

// TestEveryLineSpilled: all lines of a table may have spilled although none of them is full any
// more. A lookup of an absent position must still end.
func TestEveryLineSpilled(t *testing.T) {
	for _, form := range []struct {
		spanBits uint
		lines    int
		wide     bool
	}{
		{12, 2, false}, {16, 3, false}, {19, 7, false}, {19, 8, false}, {19, 9, false}, {19, 30, false},
		{20, 2, true}, {22, 12, true}, {20, 16, false}, {22, 64, false},
	} {
		t.Run(fmt.Sprintf("%+v", form), func(t *testing.T) {
			c, s := tableOf(t, form.spanBits, form.lines, form.wide)
			var kept []uint32
			for at := range form.lines {
				held := overflow(c, s, at)
				// The last is in the line after. Of the others only that line's guest may stay.
				for _, h := range held[:len(held)-1] {
					s.decrement(c, c.gather(h))
				}
				kept = append(kept, held[len(held)-1])
			}
			for at := range s.len() {
				if !s.at(at).spilled() {
					t.Fatalf("line %d of %d has not spilled", at, s.len())
				}
			}
			checkTable(t, c, s)
			for at := range s.len() {
				if n := s.count(c, c.gather(homed(c, s, at, 1_000))); n != 0 {
					t.Errorf("count of an absent position = %d", n)
				}
			}
			for _, h := range kept {
				if n := s.count(c, c.gather(h)); n != 1 {
					t.Errorf("count of a position that is held = %d", n)
				}
				s.decrement(c, c.gather(h))
			}
			for at := range s.len() {
				if head := s.at(at).head; head != 0 {
					t.Errorf("the head of an empty line = %#x", head)
				}
			}
		})
	}
}

// TestFindGoesNoFurtherThanInsert: after so many spilled lines there are positions that the
// narrow form cannot distinguish from an absent one. find must not return them.
func TestFindGoesNoFurtherThanInsert(t *testing.T) {
	for spanBits := uint(narrowBits + 1); spanBits <= 24; spanBits++ {
		n := (maxSpill + 1) << (spanBits - narrowBits)
		c, s := tableOf(t, spanBits, n, false)
		for _, first := range []int{0, n - 5} { // the second wraps around
			for i := range maxSpill + 1 {
				overflow(c, s, (first+i)%n)
			}
			absent := homed(c, s, first, 30_000)
			alike := (absent + 1<<narrowBits) & c.spanMask
			s.increment(c, c.gather(alike))
			if got := s.count(c, c.gather(absent)); got != 0 {
				t.Errorf("2^%d positions: count of an absent one = %d", spanBits, got)
			}
			if s.decrement(c, c.gather(absent)) != 0 || s.count(c, c.gather(alike)) != 1 {
				t.Errorf("2^%d positions: removing an absent one removed another", spanBits)
			}
		}
		checkTable(t, c, s)
	}
}

// checkTable compares the heads of a shard's lines with their contents.
func checkTable(t *testing.T, c *counters, s *shard) {
	t.Helper()
	if s.isArray || s.size == 0 {
		return
	}
	spilled := make([]int, s.len())
	taken := 0
	for at := range s.len() {
		for slot := range s.slots() {
			if s.at(at).head>>slot&1 == 0 {
				continue
			}
			taken++
			h := s.whole(c, at, slot)
			if _, where, found, _ := s.find(c, h); where != at || found != slot {
				t.Fatalf("the position in slot %d of line %d of %d is not found", slot, at, s.len())
			}
			for home := s.home(c, h); home != at; home = s.next(home) {
				spilled[home]++
			}
		}
	}
	for at, want := range spilled {
		if head := s.at(at).head; head/lineSpill != uint32(want) || head&lineTaken>>s.slots() != 0 {
			t.Fatalf("the head of line %d of %d = %#x, but %d of its positions are in later lines", at, s.len(), head, want)
		}
	}
	if want := s.len()*int(s.slots())*5/6 - taken; int(s.room) != want {
		t.Fatalf("room for %d, want %d", s.room, want)
	}
}
