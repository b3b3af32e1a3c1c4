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

// TestFingerprintUpdate: the sets of all filters of fingerprints take the same bits, and an update
// counts the free and the taken places as it should.
func TestFingerprintUpdate(t *testing.T) {
	s := &fingerprints{universe: 12, was: []uint64{1, 4, 6, 11}, is: []uint64{0, 4, 5, 11}}
	came, left := setBits(8, []uint64{0, 3}), setBits(4, []uint64{0, 2}) // 0, 2, 3, 5, 7, … are free
	if got := s.update(); got != came+left {
		t.Errorf("an update takes %d bits, want %d and %d", got, came, left)
	}
	keys, next := rivalSets(rand.New(rand.NewPCG(5, 6)), 20_000, 200)
	var sizes []float64
	for _, build := range []builder{oneHashRival, cuckooRival, quotientRival} {
		r, err := build(rivalBits, keys, next)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, float64(r.set.message())/20_000, float64(r.set.update())/200)
	}
	for i, size := range sizes[2:] {
		if want := sizes[i%2]; size < 0.98*want || size > 1.02*want {
			t.Errorf("%d: %v bits a key, ours %v", i, size, want)
		}
	}
}

// TestBumpedRibbon: it takes less than one per cent above the bound, and its layers fit together.
func TestBumpedRibbon(t *testing.T) {
	keys, _ := rivalSets(rand.New(rand.NewPCG(7, 8)), 50_000, 1)
	r, err := bumpedRival(rivalBits, keys, nil)
	if err != nil || float64(r.message) > 1.01*rivalBits*50_000 {
		t.Errorf("%d bits for 50,000 keys: %v", r.message, err)
	}
}
