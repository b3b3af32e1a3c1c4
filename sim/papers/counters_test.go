package papers

import (
	"context"
	"math"
	"testing"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

func TestBinomialTail(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		p    float64
		i    int
		want float64
	}{
		{1, 0.25, 1, 0.25}, {2, 0.5, 1, 0.75}, {2, 0.5, 2, 0.25}, {10, 0.5, 0, 1}, {10, 0.1, 3, 0.0701908264}, {60_000, math.Ln2 / 60_000, 1, 0.5},
	} {
		if got := binomialTail(c.n, c.p, c.i); math.Abs(got-c.want) > 1e-5*c.want {
			t.Errorf("binomialTail(%d, %v, %d) = %v, want %v", c.n, c.p, c.i, got, c.want)
		}
	}
}

// TestCounters runs a few trials of everything. The bound must hold, measured shares must be
// close to the predicted ones, counters that are decremented when full must fail, and those
// that are kept must not.
func TestCounters(t *testing.T) {
	job := lab.Quiet(3)
	if err := overflowBound(context.Background(), job, 10_000, 100); err != nil {
		t.Fatal(err)
	}
	for _, row := range job.Tables[0].Rows {
		bound, expected, predicted := row[1].(float64), row[2].(float64), row[3].(float64)
		if bound < expected {
			t.Errorf("i=%v: the bound, %v, is below the expectation, %v", row[0], bound, expected)
		}
		if measured, ok := row[4].(float64); ok {
			if sd := math.Sqrt(predicted * (1 - predicted) / 100); math.Abs(measured-predicted) > 5*sd+0.02 {
				t.Errorf("i=%v: measured %v, want %v ± %v", row[0], measured, predicted, sd)
			}
		}
	}
	var quick []churn
	for _, c := range churns {
		if c.load != 2.5 { // that takes millions of replacements
			quick = append(quick, c)
		}
	}
	least := 4
	exact, measured := job.Tables[1].Rows[1][1].(float64), job.Tables[1].Rows[2][1].(float64)
	if math.Abs(exact-measured) > 0.3 {
		t.Errorf("the largest counter is %v on average, want %v", measured, exact)
	}
	if testing.Short() {
		quick, least = quick[:1], 0
	}
	if err := decremented(context.Background(), job, quick, 4); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, row := range job.Tables[2].Rows {
		if row[5] != nil {
			failed++
		}
		if kept, ok := row[9].(int); ok && kept != 0 {
			t.Errorf("%v bits at load %v: %d keys denied by counters that keep their maximum", row[0], row[1], kept)
		}
	}
	if failed < least {
		t.Errorf("only %d kinds of counters had a false negative when full ones are decremented", failed)
	}
}

// TestFullCountersStay runs package digest's own filter at loads far above the planned one, and looks
// up all of its keys after every turnover: none is denied, and none of the removals is refused.
func TestFullCountersStay(t *testing.T) {
	const n, k = 2_000, 4
	for _, load := range []float64{math.Ln2, 2, 4, 6} {
		rng := lab.Quiet(3).Source(8, uint64(load))
		filter, keys, _, err := lab.Filled(digest.Geometry{Bits: uint64(math.Round(n * k / load)), Hashes: k}, rng, n)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			for range n {
				j := lab.Below(rng, n)
				if !filter.Remove(keys[j]) {
					t.Fatalf("at load %v a removal is refused", load)
				}
				keys[j] = digest.Key(rng.Uint64())
				filter.Add(keys[j])
			}
			frozen := filter.Advance()
			for _, key := range keys {
				if !filter.MayContain(key) || !frozen.MayContain(key) {
					t.Fatalf("at load %v a held key is denied", load)
				}
			}
		}
	}
}
