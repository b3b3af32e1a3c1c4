package digest

import (
	"runtime"
	"testing"

	"github.com/summarycache/summarycache/sim/cputime"
)

// received is the cost of received deltas.
type received struct {
	cpu    float64 // nanoseconds a flip
	allocs float64 // allocations a delta
	bytes  float64 // a flip
}

// receive decodes and applies a chain of deltas of so many flips, some rounds, and
// returns the least of each cost.
func receive(t *testing.T, n, replaced, count, rounds int) (least received) {
	base, deltas := deltaChain(t, n, replaced, count)
	for round := range rounds {
		var before, after runtime.MemStats
		f, flips := base, 0
		runtime.ReadMemStats(&before)
		begin := cputime.Used()
		for _, b := range deltas {
			d, err := DecodeDelta(b, f, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if f, err = d.Apply(f); err != nil {
				t.Fatal(err)
			}
			flips += d.Len()
		}
		spent := cputime.Used() - begin
		runtime.ReadMemStats(&after)
		r := received{
			cpu:    float64(spent.Nanoseconds()) / float64(flips),
			allocs: float64(after.Mallocs-before.Mallocs) / float64(count),
			bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(flips),
		}
		if round == 0 {
			least = r
		}
		least.cpu, least.allocs, least.bytes = min(least.cpu, r.cpu), min(least.allocs, r.allocs), min(least.bytes, r.bytes)
	}
	return least
}

// TestReceivedDeltaCostsWhatChanged: the cost of a delta of 32 flips does not grow with the
// filter. Memory is compared exactly, and time as a ratio within one run. Before pieces were
// shared, a hundred times as many keys cost eighty times as much.
func TestReceivedDeltaCostsWhatChanged(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("counts allocations and CPU time in one goroutine")
	}
	const flips = 32
	small, large := receive(t, 10_000, flips/2, 500, 5), receive(t, 1_000_000, flips/2, 500, 5)
	t.Logf("10,000 keys: %+v; 1,000,000 keys: %+v", small, large)
	for n, r := range map[int]received{10_000: small, 1_000_000: large} {
		if r.bytes > 2048 {
			t.Errorf("%d keys: %.0f bytes of garbage a flip, more than 2,048", n, r.bytes)
		}
		// A piece, a node and a branch for each flip, the root, lists, the delta and the filter.
		if most := float64(3*flips + 24); r.allocs > most {
			t.Errorf("%d keys: %.0f allocations a delta, more than %.0f", n, r.allocs, most)
		}
	}
	if small.cpu > 0 && large.cpu > 8*small.cpu {
		t.Errorf("a flip takes %.0f ns among 1,000,000 keys, %.0f among 10,000", large.cpu, small.cpu)
	}
}
