package papers

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/sim/lab"
)

// TestFigures: a compressed filter never has more false positives than a standard one of as many bits, and as
// many where the standard one is best. Printed values are the formula's, but for rounding. What the packages
// reach for real keys is close to the formulas.
func TestFigures(t *testing.T) {
	job := lab.Quiet(1)
	if err := figuresExperiment.Run(job); err != nil || len(job.Tables) != 5 {
		t.Fatalf("%d tables, %v", len(job.Tables), err)
	}
	for i, table := range job.Tables[:2] {
		worst := 0.
		for _, row := range table.Rows {
			if row[0].(float64) == lab.Round(lab.BestHashes(8*float64(1+i)), 6) {
				worst = row[2].(float64)
			}
		}
		for _, row := range table.Rows {
			standard, compressed := row[1].(float64), row[2].(float64)
			if compressed > standard*(1+1e-5) || compressed > worst*(1+1e-5) {
				t.Errorf("%s, k = %v: compressed %v, standard %v, at its worst %v", table.Title, row[0], compressed, standard, worst)
			}
			if row[0].(float64) == lab.Round(lab.BestHashes(8*float64(1+i)), 6) && math.Abs(compressed/standard-1) > 1e-5 {
				t.Errorf("%s: compressed %v and standard %v differ where the latter is best", table.Title, compressed, standard)
			}
		}
	}
	printed := 0
	for _, row := range job.Tables[2].Rows {
		if f, ok := row[2].(float64); ok {
			if printed++; math.Abs(f/row[1].(float64)-1) > 0.01 {
				t.Errorf("m/n = %v: %v, printed %v", row[0], row[1], f)
			}
		}
		if best := row[4].(float64); best < row[3].(float64)*0.99 || best > row[3].(float64)*1.05 {
			t.Errorf("m/n = %v: the least printed is %v, the bound %v", row[0], best, row[3])
		}
	}
	if printed != 29 {
		t.Errorf("%d printed values for k = 4", printed)
	}
	for _, c := range []struct {
		table, formula, coded int
		tolerance             float64 // bits a key: two bytes, and random variation
	}{{3, 3, 4, 0.03}, {3, 5, 6, 0.03}, {4, 2, 3, 0.3}} {
		for _, row := range job.Tables[c.table].Rows {
			if math.Abs(row[c.formula].(float64)-row[c.coded].(float64)) > c.tolerance {
				t.Errorf("%s, %v: coded in %v bits, the formula says %v", job.Tables[c.table].Title, row[0], row[c.coded], row[c.formula])
			}
		}
	}
}

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
