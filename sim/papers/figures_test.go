package papers

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// TestRiceBits codes a set in a Rice code, bit by bit.
func TestRiceBits(t *testing.T) {
	const n, f = 4_000, 0.003
	m := uint64(lab.ArrayAt(f, 1) * n)
	rng := lab.Quiet(2).Source(0)
	set := map[uint64]bool{}
	for range n {
		set[lab.Below(rng, m)] = true
	}
	sorted := slices.Sorted(maps.Keys(set))
	least := math.Inf(1)
	for low := range 20 {
		bits, next := uint64(0), uint64(0)
		for _, p := range sorted {
			bits += (p-next)>>low + 1 + uint64(low)
			next = p + 1
		}
		least = min(least, float64(bits)/n)
	}
	if got := riceBits(f); math.Abs(got/least-1) > 0.01 {
		t.Errorf("riceBits(%v) = %v, and such a set took %v", f, got, least)
	}
}
