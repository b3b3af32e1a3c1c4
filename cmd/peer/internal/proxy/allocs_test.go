//go:build !race

package proxy

import "testing"

// TestTracingOffCostsNothing: a hit allocates what it did before there were traces.
func TestTracingOffCostsNothing(t *testing.T) {
	const before = 11
	if got := leastAllocs(hit(t)); got > before {
		t.Errorf("a hit takes %v allocations, and took %v before it could be traced", got, before)
	}
	if got := leastAllocs(tracedHit(t)); got <= before {
		t.Errorf("a traced hit takes %v allocations: is it traced?", got)
	}
}

// leastAllocs measures several times: other goroutines allocate too.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 30 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}
