//go:build !race

package proxy

import "testing"

// TestTracingOffCostsNothing: a hit allocates what it did before there were traces.
func TestTracingOffCostsNothing(t *testing.T) {
	const before = 11
	if got := testing.AllocsPerRun(1000, hit(t)); got > before {
		t.Errorf("a hit takes %v allocations, and took %v before it could be traced", got, before)
	}
	if got := testing.AllocsPerRun(1000, tracedHit(t)); got <= before {
		t.Errorf("a traced hit takes %v allocations: is it traced?", got)
	}
}
