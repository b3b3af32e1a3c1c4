package digest

import (
	"flag"
	"math"
	"math/bits"
	"testing"
)

var promised = flag.Int("filters", 500, "random filters of each geometry in TestSnapshotPromise")

// TestSnapshotPromise plans for a size on the wire and draws many filters. No more of them
// exceed it than the certainty allows, and they use most of it. CI runs it with -filters 10000,
// a release with 100000, which takes 40 s of one core.
func TestSnapshotPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("draws filters in one goroutine")
	}
	for _, c := range []struct {
		goal Goal
		used float64 // of the budget, at least
	}{
		{Goal{Objects: 100, SnapshotBytes: 156, Hashes: 1}, 0.86},
		{Goal{Objects: 100, SnapshotBytes: 156, Hashes: 8, SnapshotCertainty: 0.9}, 0.92},
		{Goal{Objects: 1_000, SnapshotBytes: 1_056, Hashes: 1}, 0.97},
		{Goal{Objects: 1_000, SnapshotBytes: 1_056, Hashes: 4, SnapshotCertainty: 0.99}, 0.97},
		{Goal{Objects: 2_000, SnapshotBytes: 1_500, Hashes: 11}, 0.96}, // more than half full
		{Goal{Objects: 5_000, SnapshotBytes: 3_200, Hashes: 1, SnapshotCertainty: 0.99999}, 0.98},
		{Goal{Objects: 10_000, SnapshotBytes: 10_056, Hashes: 1}, 0.993},
		{Goal{Objects: 10_000, SnapshotBytes: 10_056, Hashes: 2}, 0.993},
	} {
		plan, err := Plan(c.goal)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(plan.Geometry.String(), func(t *testing.T) {
			t.Parallel()
			goal, _ := c.goal.complete()
			drawPromised(t, plan, goal, c.used, *promised)
		})
	}
	plan, err := Plan(Goal{Objects: 100_000, SnapshotBytes: 100_056})
	if err != nil {
		t.Fatal(err)
	}
	drawPromised(t, plan, Goal{Objects: 100_000, SnapshotBytes: 100_056, SnapshotCertainty: 0.999}, 0.998, 20)
}

// drawPromised draws filters. It counts the ones of all, and encodes the first ones.
func drawPromised(t *testing.T, plan Design, goal Goal, used float64, filters int) {
	t.Helper()
	g, budget := plan.Geometry, float64(goal.SnapshotBytes)
	r := random(g.Bits)
	words := make([]uint64, (g.Bits+63)/64)
	var buf [maxHashes]uint64
	exceeded, sum := 0, 0.0
	encoded := min(20, filters)
	for i := range filters {
		clear(words)
		ones := uint64(0)
		for range goal.Objects {
			for _, p := range g.positions(&buf, Key(r.Uint64())) {
				w := &words[p>>6]
				ones += ^(*w >> (p & 63)) & 1
				*w |= 1 << (p & 63)
			}
		}
		most := encodedAtMost(g.Bits, g.Hashes, goal.Objects, entropy(float64(ones)/float64(g.Bits)))
		if most > plan.SnapshotBound {
			exceeded++
		}
		if i >= encoded {
			continue
		}
		f := newFilter(g, Version{Epoch: 1 << 31, Sequence: uint64(i)}, goal.Objects, setOf(words))
		size := float64(len(f.AppendTo(nil)))
		if sum += size; size > most {
			t.Errorf("%d of %d positions take %.0f bytes, and at most %.0f were allowed for", ones, g.Bits, size, most)
		}
	}
	odds := float64(filters) * (1 - goal.SnapshotCertainty)
	if float64(exceeded) > odds+4*math.Sqrt(odds) {
		t.Errorf("%d of %d filters may exceed %.0f bytes", exceeded, filters, plan.SnapshotBound)
	}
	if mean := sum / float64(encoded); mean < used*budget || plan.SnapshotBound > budget {
		t.Errorf("filters of %.0f bytes use %.2f %% of %.0f; bound %.0f", mean, 100*mean/budget, budget, plan.SnapshotBound)
	}
}

func setOf(words []uint64) []uint64 {
	var list []uint64
	for i, word := range words {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint64(64*i+bits.TrailingZeros64(word)))
		}
	}
	return list
}
