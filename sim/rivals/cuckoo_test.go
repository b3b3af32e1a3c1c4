package rivals

import (
	"math"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

func TestCuckooFilter(t *testing.T) {
	f := newCuckooFilter(67, 16)
	job := lab.Quiet(1)
	rng := job.Source(0)
	var held []uint64
	for step := range 20_000 {
		if len(held) < 262 && step%3 > 0 { // up to 98 % full
			key := rng.Uint64()
			held = append(held, key)
			f.insert(key)
		} else if len(held) > 0 {
			i := int(lab.Below(rng, uint64(len(held))))
			f.remove(held[i])
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
		if step%100 == 0 {
			for _, key := range held {
				if !f.contains(key) {
					t.Fatalf("step %d: a key that was inserted is denied", step)
				}
			}
		}
	}
	for _, key := range held {
		f.remove(key)
	}
	for _, b := range f.buckets {
		if b != ([4]uint32{}) || len(f.spilled) > 0 {
			t.Fatalf("emptied, it holds %v and %v", b, f.spilled)
		}
	}
}

// TestCuckooFalsePositives: a filter of any size has as many false positives as follow from
// eight fingerprints of 16 bits.
func TestCuckooFalsePositives(t *testing.T) {
	const buckets, keys, trials = 1001, 3800, 1_000_000
	f := newCuckooFilter(buckets, 16)
	rng := lab.Quiet(1).Source(0)
	for range keys {
		f.insert(rng.Uint64())
	}
	found := 0
	for range trials {
		if f.contains(rng.Uint64()) {
			found++
		}
	}
	want := 8. * keys / (4 * buckets) / (1 << 16) * trials
	if math.Abs(float64(found)-want) > 5*math.Sqrt(want) {
		t.Errorf("%d false positives in %d look-ups, want %.0f", found, trials, want)
	}
	if n := len(f.spilled); n > keys/100 {
		t.Errorf("%d of %d fingerprints found no place", n, keys)
	}
}

// TestCuckooClass: keys have one class if and only if they have one fingerprint and the same two
// buckets, and the classes are dense.
func TestCuckooClass(t *testing.T) {
	for _, buckets := range []int{1, 2, 7, 8} {
		f := newCuckooFilter(buckets, 3)
		type pair struct{ fingerprint, low, high uint32 }
		classes := map[uint64]pair{}
		pairs := map[pair]bool{}
		rng := lab.Quiet(9).Source(uint64(buckets))
		for range 5000 {
			key := rng.Uint64()
			fingerprint, a, b := f.places(key)
			p, class := pair{fingerprint, min(a, b), max(a, b)}, f.class(key)
			if was, seen := classes[class]; seen && was != p || class >= uint64(buckets/2+1)<<3 {
				t.Fatalf("%d buckets: class %d is that of %v and %v", buckets, class, was, p)
			}
			classes[class], pairs[p] = p, true
		}
		if len(classes) != len(pairs) {
			t.Errorf("%d buckets: %d classes of %d pairs", buckets, len(classes), len(pairs))
		}
	}
}
