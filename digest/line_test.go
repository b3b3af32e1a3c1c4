package digest

import (
	"maps"
	"testing"
)

// TestLineMatch: match finds all that is there, and nothing if nothing is there.
func TestLineMatch(t *testing.T) {
	r := random(1)
	for range 20_000 {
		var l line
		for i := range l.low {
			l.low[i] = uint16(r.IntN(6)) // zeros, ones and duplicates, which are the difficult cases
		}
		x := uint32(r.IntN(7))
		claimed := make(map[uint]bool)
		for match := l.match(x); match != 0; match &= match - 1 {
			claimed[matchSlot(match)] = true
		}
		found := false
		for i, low := range l.low {
			if uint32(low) == x {
				found = true
				if !claimed[uint(i)] {
					t.Fatalf("match(%d) in %d misses slot %d", x, l.low, i)
				}
			}
		}
		if !found && len(claimed) > 0 {
			t.Fatalf("match(%d) in %d = %v", x, l.low, claimed)
		}
	}
}

// TestTable changes positions at random and compares a shard with a map. Some of the positions
// belong to the same few lines, so that they overflow into later ones.
func TestTable(t *testing.T) {
	for spanBits := uint(minSpanBits); spanBits <= maxSpanBits; spanBits++ {
		c := spanned(t, spanBits)
		r := random(uint64(spanBits))
		s := &c.shards[3]
		counts, frozen := map[uint32]uint8{}, map[uint32]bool{}
		pool := make([]uint32, 500)
		for i := range pool {
			pool[i] = r.Uint32N(1 << spanBits)
			if i >= 440 {
				pool[i] = c.gather(uint32(i)) // neighbours
			}
		}
		for step := range 30_000 {
			rel := pool[r.IntN(len(pool))]
			if step%10_000 > 5_000 { // fewer, so that lines become free
				rel = pool[r.IntN(20)]
			}
			n := counts[rel]
			if r.IntN(2) == 0 {
				if got := s.increment(c, rel); got != n {
					t.Fatalf("2^%d, step %d: increment(%d) = %d, want %d", spanBits, step, rel, got, n)
				}
				counts[rel] = min(n+1, maxCount)
			} else {
				if got := s.decrement(c, rel); got != n {
					t.Fatalf("2^%d, step %d: decrement(%d) = %d, want %d", spanBits, step, rel, got, n)
				}
				if n > 0 && n < maxCount {
					counts[rel] = n - 1
				}
			}
			if step%3_000 == 0 {
				checkDrained(t, c, s, counts, frozen)
			}
		}
		checkDrained(t, c, s, counts, frozen)
		if s.isArray {
			continue
		}
		inTable := map[uint32]uint8{}
		for h, state := range s.all(c) {
			inTable[c.gather(h)] = uint8(state & slotCount)
		}
		maps.DeleteFunc(counts, func(_ uint32, n uint8) bool { return n == 0 })
		if !maps.Equal(inTable, counts) {
			t.Errorf("2^%d: the table holds %d positions, want %d", spanBits, len(inTable), len(counts))
		}
		for at := range s.len() {
			if l := s.at(at); len(inTable) == 0 && l.head != 0 {
				t.Errorf("2^%d: an empty line has head %x", spanBits, l.head)
			}
		}
	}
}

// checkDrained freezes a shard.
func checkDrained(t *testing.T, c *counters, s *shard, counts map[uint32]uint8, frozen map[uint32]bool) {
	t.Helper()
	checkTable(t, c, s)
	differing := int(s.differing)
	found := s.drain(c, nil)
	if len(found) != differing || s.differing != 0 {
		t.Fatalf("drain gave %d positions, %d differed", len(found), differing)
	}
	for _, change := range found {
		rel, set := change>>1, change&1 != 0
		if set == frozen[rel] || set != (counts[rel] > 0) {
			t.Fatalf("drain says %d is set: %v; frozen %v, count %d", rel, set, frozen[rel], counts[rel])
		}
		frozen[rel] = set
	}
	for rel, n := range counts {
		if (n > 0) != frozen[rel] {
			t.Fatalf("position %d with count %d is not drained", rel, n)
		}
		if got := s.count(c, rel); got != n {
			t.Fatalf("count(%d) = %d, want %d", rel, got, n)
		}
	}
}

// TestTableFormsMeet: if positions are far apart, a shard begins with wide lines and changes to
// narrow ones when there are enough of them.
func TestTableFormsMeet(t *testing.T) {
	c := spanned(t, 21)
	s := &c.shards[0]
	r := random(5)
	counts := map[uint32]uint8{}
	wasWide := false
	for range 3_000 {
		rel := r.Uint32N(1 << 21)
		s.increment(c, rel)
		counts[rel]++
		wasWide = wasWide || s.wide
	}
	if !wasWide || s.wide || s.isArray {
		t.Errorf("wide once: %v, at last: %v, array: %v", wasWide, s.wide, s.isArray)
	}
	checkDrained(t, c, s, counts, map[uint32]bool{})
}
