package systems

import (
	"slices"
	"testing"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

// TestEvictionOrders: of four objects of which the first was requested again, a fifth displaces the
// second under LRU and CLOCK, and the first under FIFO.
func TestEvictionOrders(t *testing.T) {
	for name, c := range map[string]struct {
		cache copies
		gone  uint32
	}{"LRU": {newLRU(4), 1}, "CLOCK": {secondChance{newLRU(4), map[uint32]bool{}}, 1}, "FIFO": {fifo{newLRU(4)}, 0}} {
		var gone []uint32
		put := func(key uint32) {
			c.cache.put(object{key: key}, false, func(uint32) {}, func(key uint32) { gone = append(gone, key) })
		}
		for key := range uint32(4) {
			put(key)
		}
		if _, held := c.cache.get(0); !held || len(gone) > 0 {
			t.Fatalf("%s: an object was lost: %v", name, gone)
		}
		put(4)
		if !slices.Equal(gone, []uint32{c.gone}) {
			t.Errorf("%s: %v left, want %d", name, gone, c.gone)
		}
	}
}

// TestAged follows a publisher whose oldest positions leave and whose last ones come back: the codes
// that know this are shorter, and all counts are right.
func TestAged(t *testing.T) {
	rng := lab.Quiet(1).Source(1)
	a := aged{geometry: digest.Geometry{Bits: 1 << 20, Hashes: 1}, objects: 1000}
	var held, left []uint64 // in order
	fresh := func() uint64 { return lab.Below(rng, 1<<20) }
	for range 1000 {
		held = append(held, fresh())
	}
	for step := range 50 {
		var came []uint64
		for i := range 50 {
			if i < 10 && len(left) >= 20 { // some of those that left last
				at := len(left) - 1 - i
				came = append(came, left[at])
				left = slices.Delete(left, at, at+1)
			} else {
				came = append(came, fresh())
			}
		}
		if step > 0 {
			left, held = append(left, held[:50]...), append(held[50:], came...)
		}
		next := slices.Compact(slices.Sorted(slices.Values(held)))
		a.update(next, 1000, step > 20)
		if got := slices.Sorted(slices.Values(a.held)); !slices.Equal(got, next) {
			t.Fatalf("step %d: %d positions are held, want %d", step, len(got), len(next))
		}
		if len(a.ghosts) > a.objects || slices.ContainsFunc(a.ghosts, func(p uint64) bool { return slices.Contains(next, p) }) {
			t.Fatalf("step %d: what left is wrong", step)
		}
	}
	if a.deltas != 29 || a.arrived < 29*48 || a.back < 29*9 || a.back > 29*11 || a.replaced < 29*48 {
		t.Errorf("%v deltas, %v came, %v came back, %v left", a.deltas, a.arrived, a.back, a.replaced)
	}
	if a.aged > 0.9*a.plain || a.ghosted > 0.98*a.plain || a.both > 0.85*a.plain {
		t.Errorf("plain %v bytes, with ages %v, with returning keys %v, with both %v", a.plain, a.aged, a.ghosted, a.both)
	}
}

func TestRanked(t *testing.T) {
	sorted := []uint64{3, 5, 9}
	if got, want := ranked(12, sorted, []uint64{4, 11}, false), len(arith.AppendSet(nil, arith.Choose(9, 2), 9, []uint64{3, 8})); got != want {
		t.Errorf("outside: %d bytes, want %d", got, want)
	}
	if got, want := ranked(3, sorted, []uint64{5, 9}, true), len(arith.AppendSet(nil, arith.Choose(3, 2), 3, []uint64{1, 2})); got != want {
		t.Errorf("within: %d bytes, want %d", got, want)
	}
}

// TestCodedGiven: a set that many others share is short for a receiver that has theirs, and one that
// none shares is hardly longer.
func TestCodedGiven(t *testing.T) {
	rng := lab.Quiet(2).Source(1)
	counts := map[uint64]int{}
	var own, other []uint64
	for range 2000 {
		p := lab.Below(rng, 1<<24)
		own = append(own, p)
		counts[p] = 3
		other = append(other, lab.Below(rng, 1<<24))
	}
	slices.Sort(own)
	slices.Sort(other)
	own, other = slices.Compact(own), slices.Compact(other)
	plain := codedGiven(1<<24, own, nil)
	if known := codedGiven(1<<24, own, counts); known > 20 {
		t.Errorf("%d bytes of a set that is known, %d without", known, plain)
	}
	if new, alone := codedGiven(1<<24, other, counts), codedGiven(1<<24, other, nil); new > alone+60 || new < alone-60 {
		t.Errorf("%d bytes of a set that is not shared, %d without the others", new, alone)
	}
}
