package papers

import (
	"math"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// TestDelta: on filters of a tenth of the size, ours has the size in RESULTS.md, and is the
// smallest.
func TestDelta(t *testing.T) {
	if testing.Short() {
		t.Skip("codes deltas in one goroutine")
	}
	job := &lab.Job{Seed: 1}
	for _, c := range []struct{ f, c, most float64 }{{1e-3, 0.01, 26.5}, {0.02, 0.01, 21.8}} {
		sent := map[string]float64{}
		for _, s := range tunings {
			mn, k := s.choose(c.f, c.c)
			if got := lab.FalsePositives(mn, float64(k)); math.Abs(got/c.f-1) > 1e-9 {
				t.Errorf("%s: m/n=%v, k=%d have rate %v, want %v", s.name, mn, k, got, c.f)
			}
			m, err := measureDelta(job, 100_000, mn, k, c.c, 7)
			if err != nil {
				t.Fatal(err)
			}
			context, xor := m.context, m.xor
			sent[s.name] = context
			limit := lab.GivenBits(mn, float64(k), c.c) / c.c
			// There are a thousand keys. With many flips a key, their number varies by a few
			// per cent; the header costs half a bit a key.
			if context < limit*0.95 || context > limit*1.04 || xor < context*0.99 {
				t.Errorf("%s: %.2f bits, XOR %.2f, entropy %.2f", s.name, context, xor, limit)
			}
		}
		if sent["ours"] > c.most*1.02 || sent["ours"] > sent["paper"]*1.001 || sent["paper"] > sent["standard"] {
			t.Errorf("f=%g c=%g: %v bits per replaced key", c.f, c.c, sent)
		}
	}
}
