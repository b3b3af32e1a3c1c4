package rivals

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRivals builds each structure for other sets than those in RESULTS.md, and looks up all of
// their keys. RESULTS.md has the measured f.
func TestRivals(t *testing.T) {
	for n, width := range map[int]int{1000: fewestBits, 5000: mostBits, 20_000: rivalBits} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = rng.Uint64()
		}
		next := slices.Clone(keys)
		for i := range n / 100 {
			next[i] = rng.Uint64()
		}
		for _, r := range rivals {
			built, err := r.build(width, keys, next)
			if err != nil {
				t.Errorf("%s of %d keys: %v", r.name, n, err)
				continue
			}
			for _, k := range keys {
				if !built.contains(k) {
					t.Errorf("%s of %d keys denies one", r.name, n)
					break
				}
			}
			// No structure is smaller than n·log2(1/f) bits, and no update than that of the new
			// keys.
			if built.message < width*n || built.memory < width*n || built.update > 0 && built.update < width*n/100 {
				t.Errorf("%s of %d keys: %d bits in memory, %d as a message, %d as an update", r.name, n, built.memory, built.message, built.update)
			}
		}
	}
}

// TestRatelessSymbols: a difference of one element takes one symbol, and a large one some 1.35
// an element, as its authors found.
func TestRatelessSymbols(t *testing.T) {
	if got := ratelessSymbols([]uint64{42}); got != 1 {
		t.Errorf("one element takes %d symbols", got)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	difference := make([]uint64, 20_000)
	for i := range difference {
		difference[i] = rng.Uint64()
	}
	if each := float64(ratelessSymbols(difference)) / float64(len(difference)); each < 1.3 || each > 1.45 {
		t.Errorf("%d elements take %.3f symbols each", len(difference), each)
	}
}
