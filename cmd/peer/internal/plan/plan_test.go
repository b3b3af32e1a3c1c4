package plan

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
)

// goals is a grid of possible goals.
func goals() (all []Goal) {
	for _, n := range []uint64{1, 1_000, 100_000, 10_000_000} {
		for _, peers := range []int{2, 50, 1_000} {
			for _, churn := range []float64{0, 1, 1_000} {
				base := Goal{Objects: n, Peers: peers, Churn: churn, Interval: time.Minute}
				for _, edit := range []func(*Goal){
					func(g *Goal) { g.FalseCandidates = 0.1 },
					func(g *Goal) { g.FalseCandidates = 1e-4; g.Interval = 0 },
					func(g *Goal) { g.FalseCandidates = 0.5; g.MemoryBytes = 1 << 40 },
					func(g *Goal) { g.FalseCandidates = 0.1; g.Interval = 0; g.BytesPerSecond = 1e7 },
					func(g *Goal) { g.BytesPerSecond = 1e6; g.Interval = 10 * time.Minute },
					func(g *Goal) { g.MemoryBytes = int64(n) * int64(peers) * 2 },
				} {
					g := base
					edit(&g)
					all = append(all, g)
				}
			}
		}
	}
	return all
}

// TestPlanHasNoBetterNeighbour compares every plan of the grid with its
// neighbours in m, evaluated one by one.
func TestPlanHasNoBetterNeighbour(t *testing.T) {
	planned := 0
	for _, goal := range goals() {
		plan, err := For(goal)
		if err != nil {
			if !errors.As(err, new(*GoalError)) {
				t.Errorf("For(%+v) = %v", goal, err)
			}
			continue
		}
		planned++
		goal, _ = goal.complete()
		if goal.FalseCandidates == 0 && plan.Binding == "" && plan.Geometry.Bits < bloom.MaxBits { // which is no budget
			goal.FalseCandidates = fewEnough * goal.others()
		}
		if err := goal.exceeded(plan); err != nil || plan.FalsePositiveRate > goal.rate() {
			t.Errorf("For(%+v) = %+v breaks %v", goal, plan, err)
		}
		m := plan.Geometry.Bits
		sizes := []uint64{m - 1, m, m + 1, m - m/100, m + m/100, m / 2, 2 * m}
		if least, ok := bloom.FewestBits(goal.Objects, 1, goal.rate()); ok {
			sizes = append(sizes, least, least+1)
		}
		for _, bits := range sizes {
			if bits < 1 || bits > bloom.MaxBits {
				continue
			}
			other := goal.evaluate(bits)
			if other.FalsePositiveRate <= goal.rate() && goal.exceeded(other) == nil && goal.better(other, plan) {
				t.Fatalf("For(%+v) = %+v, but m=%d is better: %+v", goal, plan, bits, other)
			}
		}
	}
	if planned < 120 {
		t.Errorf("only %d goals were possible", planned)
	}
}

// better reports whether a is better than b: whether it has less traffic or fewer false
// positives, depending on the goal.
func (g Goal) better(a, b Design) bool {
	x, y := a.FalsePositiveRate, b.FalsePositiveRate
	if g.FalseCandidates > 0 {
		x, y = a.cost(), b.cost()
		if g.pacing() {
			x, y = a.Threshold, b.Threshold
		}
	}
	return x < y-1e-12*(x+y)
}

// cost is the traffic, or the size of a snapshot where nothing changes.
func (p Design) cost() float64 {
	if p.BytesPerSecond > 0 {
		return p.BytesPerSecond
	}
	return p.SnapshotBytes
}

// TestImpossibleGoals: a goal becomes possible if the named budget is raised to the given
// value, and not with a little less.
func TestImpossibleGoals(t *testing.T) {
	refused := 0
	for _, goal := range append(goals(),
		Goal{Objects: 1e6, Peers: 100, Churn: 100, Interval: time.Second, FalseCandidates: 0.1, BytesPerSecond: 1000},
		Goal{Objects: 1e6, Peers: 100, FalseCandidates: 0.1, MemoryBytes: 1000},
		Goal{Objects: 100_000, Peers: 100, FalseCandidates: 1e-300},
	) {
		_, err := For(goal)
		var impossible *GoalError
		if !errors.As(err, &impossible) {
			continue
		}
		refused++
		raise := func(by float64) Goal {
			g := goal
			switch impossible.Budget {
			case "BytesPerSecond":
				g.BytesPerSecond = impossible.Need * by
			case "MemoryBytes":
				g.MemoryBytes = int64(impossible.Need * by)
			case "FalseCandidates":
				g.FalseCandidates = impossible.Need * by
			}
			return g
		}
		if _, err := For(raise(1.001)); err != nil {
			t.Errorf("For(%+v): %v; with that: %v", goal, impossible, err)
		}
		if _, err := For(raise(0.9)); err == nil {
			t.Errorf("For(%+v): %v, but less is enough", goal, impossible)
		}
	}
	if refused < 4 {
		t.Errorf("only %d goals were refused", refused)
	}
	for _, goal := range []Goal{
		{}, {Objects: 1}, {Objects: 1, FalseCandidates: -1}, {Objects: 1, FalseCandidates: math.NaN()}, {Objects: 1, MemoryBytes: 1, Peers: 1},
		{Objects: 1, MemoryBytes: 1, Churn: math.NaN()},
		{Objects: 1, MemoryBytes: 1, Interval: -1}, {Objects: 1 << 60, MemoryBytes: 1},
	} {
		if _, err := For(goal); err == nil || errors.As(err, new(*GoalError)) {
			t.Errorf("For(%+v) = %v", goal, err)
		}
	}
}

// TestPlanPaces: updates are as frequent as the budget allows, but not more frequent than is
// useful. With the two smallest budgets, updates are just short enough for the datagrams of
// their notices, and just too long.
func TestPlanPaces(t *testing.T) {
	goal := Goal{Objects: 200_000, Peers: 8, Churn: 20, FalseCandidates: 0.007}
	for _, c := range []struct {
		budget      float64
		least, most time.Duration
		binding     string
	}{
		{1e9, time.Second, 1200 * time.Millisecond, "FalseCandidates"},
		{1000, time.Second, 1200 * time.Millisecond, "BytesPerSecond"},
		{590, 10 * time.Second, 13 * time.Second, "BytesPerSecond"},
		{585, 20 * time.Second, 25 * time.Second, "BytesPerSecond"},
	} {
		goal.BytesPerSecond = c.budget
		plan, err := For(goal)
		if err != nil || plan.Interval < c.least || plan.Interval > c.most || plan.Binding != c.binding || plan.BytesPerSecond > c.budget {
			t.Errorf("for %v bytes a second: %+v, %v", c.budget, plan, err)
		}
		fill, _ := bloom.Predict(plan.Geometry.Bits, 1, goal.Objects)
		full, _ := goal.complete()
		for part := full.leastShare() * shareParts; part < plan.Threshold*shareParts; part++ {
			other := plan
			if full.traffic(&other, fill, part/shareParts); other.BytesPerSecond <= c.budget {
				t.Fatalf("for %v bytes a second: a share of %v, though %v takes %v", c.budget, plan.Threshold, other.Threshold, other.BytesPerSecond)
			}
		}
	}
}

// TestPlanPredicts builds what was planned and measures it.
func TestPlanPredicts(t *testing.T) {
	const n = 50_000
	for _, goal := range []Goal{
		{Objects: n, Peers: 11, Churn: 10, Interval: time.Minute, FalseCandidates: 0.01},
		{Objects: n, Peers: 11, Churn: 100, Interval: 10 * time.Second, FalseCandidates: 0.3},
		{Objects: n, Churn: 10, MemoryBytes: n, Interval: 50 * time.Second},
	} {
		plan, err := For(goal)
		if err != nil {
			t.Fatal(err)
		}
		replace := int(math.Round(plan.Threshold * n))
		v := versionsInTurn(t, plan.Geometry, n, replace, 2)
		d, _ := digest.Diff(v[0], v[1])
		message, err := d.AppendTo(nil, v[0])
		if err != nil {
			t.Fatal(err)
		}
		others := float64(max(goal.Peers, 2) - 1)
		for _, c := range []struct {
			name               string
			got, want, per100k float64
		}{
			{"rate", v[0].FalsePositiveRate(), plan.FalsePositiveRate, 3_000},
			{"snapshot", float64(len(v[0].AppendTo(nil))), plan.SnapshotBytes, 500},
			{"delta", float64(len(message)), plan.DeltaBytes, 3_000},
			{"memory", float64(v[0].MemoryBytes()) * others, plan.MemoryBytes, 2_000}, // its last nodes are not full
		} {
			if math.Abs(c.got/c.want-1)*1e5 > c.per100k {
				t.Errorf("%v: %s is %.5g, planned %.5g", plan.Geometry, c.name, c.got, c.want)
			}
		}
		if got := float64(len(v[0].AppendTo(nil))); got > plan.SnapshotBound {
			t.Errorf("%v: a snapshot of %.0f bytes, bound %.0f", plan.Geometry, got, plan.SnapshotBound)
		}
	}
}

// versionsInTurn returns filters of n keys, between which some are replaced, every key at most once.
func versionsInTurn(t testing.TB, g digest.Geometry, n, replace, count int) (out []*digest.Filter) {
	r := rand.New(rand.NewPCG(g.Bits, 0x5ca1ab1e))
	c, err := digest.NewCountingFilter(g, 7)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]digest.Key, n)
	for i := range keys {
		keys[i] = digest.Key(r.Uint64())
		c.Add(keys[i])
	}
	for i := range count {
		out = append(out, c.Advance())
		for j := range replace {
			c.Remove(keys[i*replace+j])
			c.Add(digest.Key(r.Uint64()))
		}
	}
	return out
}

// TestPlanOfFewObjects: an update is sent after at least one replacement, and at most once a
// second unless the goal asks for more.
func TestPlanOfFewObjects(t *testing.T) {
	for _, c := range []struct {
		goal      Goal
		threshold float64
		interval  time.Duration
	}{
		{Goal{Objects: 1, Churn: 1, FalseCandidates: 0.01}, 1, time.Second},
		{Goal{Objects: 1, Churn: 0.1, FalseCandidates: 0.01, BytesPerSecond: 1e6}, 1, 10 * time.Second},
		{Goal{Objects: 20, Churn: 0.5, FalseCandidates: 0.01}, 1. / 20, 2 * time.Second},
		{Goal{Objects: 1_000, Churn: 1_000, FalseCandidates: 0.01}, 1, time.Second},
		{Goal{Objects: 1_000, Churn: 1_000, FalseCandidates: 0.01, Interval: 100 * time.Millisecond}, 0.1, 100 * time.Millisecond},
		{Goal{Objects: 100_000, Churn: 100, FalseCandidates: 0.01}, 0.01, 10 * time.Second},
	} {
		plan, err := For(c.goal)
		if err != nil {
			t.Errorf("For(%+v) = %v", c.goal, err)
			continue
		}
		if math.Abs(plan.Threshold-c.threshold) > 1e-3*c.threshold || (plan.Interval-c.interval).Abs() > c.interval/1000 {
			t.Errorf("For(%+v) publishes after %v or a share of %v, want %v and %v", c.goal, plan.Interval, plan.Threshold, c.interval, c.threshold)
		}
	}
}

// BenchmarkPlan plans for each kind of goal.
func BenchmarkPlan(b *testing.B) {
	base := Goal{Objects: 1e6, Peers: 100, Churn: 100, Interval: time.Minute, FalseCandidates: 0.1}
	for _, c := range []struct {
		name string
		with func(*Goal)
	}{
		{"candidates", func(*Goal) {}},
		{"memory", func(g *Goal) { g.FalseCandidates, g.MemoryBytes = 0, 200<<20 }},
		{"traffic", func(g *Goal) { g.FalseCandidates, g.BytesPerSecond = 0, 1e6 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			goal := base
			c.with(&goal)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := For(goal); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "µs/plan")
			b.ReportMetric(0, "ns/op")
		})
	}
}
