package plan

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
)

var promised = flag.Int("filters", 500, "random filters of each geometry in TestSnapshotPromise")

// TestSnapshotPromise draws many filters of what is planned. No more of them exceed the planned bound of their size
// than the certainty allows, and they use most of it. CI runs it with -filters 5000,
// a release with 10000.
func TestSnapshotPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("draws filters in one goroutine")
	}
	for _, c := range []struct {
		goal Goal
		used float64 // of the bound, at least
	}{
		{Goal{Objects: 100, FalseCandidates: 0.01}, 0.86},
		{Goal{Objects: 1_000, FalseCandidates: 0.01}, 0.97},
		{Goal{Objects: 1_000, FalseCandidates: 0.3}, 0.96},
		{Goal{Objects: 5_000, FalseCandidates: 0.1}, 0.98},
		{Goal{Objects: 5_000, FalseCandidates: 0.7}, 0.95}, // more than half full
		{Goal{Objects: 10_000, FalseCandidates: 0.01}, 0.99},
	} {
		plan, err := For(c.goal)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(plan.Geometry.String(), func(t *testing.T) {
			t.Parallel()
			drawPromised(t, plan, c.goal, c.used, *promised)
		})
	}
	goal := Goal{Objects: 100_000, FalseCandidates: 0.003}
	plan, err := For(goal)
	if err != nil {
		t.Fatal(err)
	}
	drawPromised(t, plan, goal, 0.998, 20)
}

// drawPromised draws filters. It counts the ones of all, and encodes the first ones.
func drawPromised(t *testing.T, plan Design, goal Goal, used float64, filters int) {
	t.Helper()
	g, bound := plan.Geometry, plan.SnapshotBound
	r := rand.New(rand.NewPCG(g.Bits, 0x5ca1ab1e))
	words := make([]uint64, (g.Bits+63)/64)
	var positions []uint64
	exceeded, sum := 0, 0.0
	encoded := min(20, filters)
	for i := range filters {
		clear(words)
		ones := uint64(0)
		var keys []digest.Key
		for range goal.Objects {
			k := digest.Key(r.Uint64())
			if i < encoded {
				keys = append(keys, k)
			}
			positions = g.AppendPositions(positions[:0], k)
			for _, p := range positions {
				w := &words[p>>6]
				ones += ^(*w >> (p & 63)) & 1
				*w |= 1 << (p & 63)
			}
		}
		most := encodedAtMost(g.Bits, goal.Objects, bloom.Entropy(float64(ones)/float64(g.Bits)))
		if most > plan.SnapshotBound {
			exceeded++
		}
		if i >= encoded {
			continue
		}
		f, err := digest.FilterOf(g, digest.Version{Epoch: 1 << 31, Sequence: uint64(i)}, slices.Values(keys))
		if err != nil {
			t.Fatal(err)
		}
		size := float64(len(f.AppendTo(nil)))
		if sum += size; size > most {
			t.Errorf("%d of %d positions take %.0f bytes, and at most %.0f were allowed for", ones, g.Bits, size, most)
		}
	}
	odds := float64(filters) * boundOdds
	if float64(exceeded) > odds+4*math.Sqrt(odds) {
		t.Errorf("%d of %d filters may exceed %.0f bytes", exceeded, filters, plan.SnapshotBound)
	}
	if mean := sum / float64(encoded); mean < used*bound {
		t.Errorf("filters of %.0f bytes use %.2f %% of %.0f", mean, 100*mean/bound, bound)
	}
}
