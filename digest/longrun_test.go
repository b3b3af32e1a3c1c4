package digest

import (
	"flag"
	"testing"
)

var (
	operations = flag.Int("ops", 300_000, "random operations of TestNeverAFalseNegative, over all geometries")
	opsSeed    = flag.Uint64("opsseed", 0, "which operations those are")
)

// TestNeverAFalseNegative adds, removes and looks up random keys, and compares with a map of
// the held ones. Small geometries make counters overflow; a few favourite keys are held many
// times. For a thorough run use -ops 100000000, or several runs with one -opsseed each.
func TestNeverAFalseNegative(t *testing.T) {
	runs := []Geometry{
		{Bits: 64, Hashes: 3}, // most counters become stuck at once
		{Bits: 3_000, Hashes: 4},
		{Bits: 60_000, Hashes: 2},
		{Bits: 5_000, Hashes: 1},
		{Bits: 1 << 30, Hashes: 1},
		{Bits: 1 << 40, Hashes: 6},
	}
	for i, g := range runs {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			neverAFalseNegative(t, g, *opsSeed<<8+uint64(i), *operations/len(runs))
		})
	}
}

func neverAFalseNegative(t *testing.T, g Geometry, seed uint64, operations int) {
	r := random(seed)
	c := counting(t, g)
	pool := randomKeys(r, 5_000)
	held := map[Key]int{}
	kept := 0
	frozen, frozenHeld := c.Current(), map[Key]bool{}
	for op := range operations {
		k := pool[r.IntN(len(pool))]
		if r.IntN(8) == 0 {
			k = pool[r.IntN(8)]
		}
		switch n := r.IntN(16); {
		case n < 6:
			c.Add(k)
			held[k]++
			kept++
		case n < 11:
			if held[k] == 0 {
				continue // removing a key that was not added may remove others
			}
			if !c.Remove(k) {
				t.Fatalf("operation %d: Remove refused a key that is held %d times", op, held[k])
			}
			held[k]--
			kept--
		case n < 15:
			if held[k] > 0 && !c.MayContain(k) {
				t.Fatalf("operation %d: a key that is held %d times was denied", op, held[k])
			}
			if frozenHeld[k] && !frozen.MayContain(k) {
				t.Fatalf("operation %d: the frozen filter denies a key", op)
			}
		case r.IntN(2_000) == 0:
			base := frozen
			var d *Delta
			if frozen, d = c.AdvanceDelta(); c.Len() != kept {
				t.Fatalf("operation %d: Len = %d, want %d", op, c.Len(), kept)
			}
			if applied, err := d.Apply(base); err != nil || applied.Version() != frozen.Version() {
				t.Fatalf("operation %d: Apply = %v", op, err)
			}
			clear(frozenHeld)
			for k, n := range held {
				frozenHeld[k] = n > 0
			}
		}
	}
}
