package digest

import (
	"errors"
	"math"
	"testing"
	"time"
)

// goals is a grid of possible goals.
func goals() (all []Goal) {
	for _, n := range []uint64{1, 1_000, 100_000, 10_000_000} {
		for _, peers := range []int{2, 50, 1_000} {
			for _, churn := range []float64{0, 1, 1_000} {
				base := Goal{Objects: n, Peers: peers, Churn: churn, Interval: time.Minute, Resend: 0.01}
				for _, edit := range []func(*Goal){
					func(g *Goal) { g.FalseCandidates = 0.1 },
					func(g *Goal) { g.FalseCandidates = 1e-4; g.Threshold = 0.05 },
					func(g *Goal) { g.FalseCandidates = 0.5; g.MemoryBytes = 1 << 40 },
					func(g *Goal) { g.FalseCandidates = 0.1; g.Interval = 0; g.BytesPerSecond = 1e7 },
					func(g *Goal) { g.BytesPerSecond = 1e6; g.Interval = 10 * time.Minute },
					func(g *Goal) { g.MemoryBytes = int64(n) * int64(peers) * 2 },
					func(g *Goal) { g.SnapshotBytes = int64(n) + 100; g.SnapshotCertainty = 0.99999 },
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
// neighbours in m and k, evaluated one by one.
func TestPlanHasNoBetterNeighbour(t *testing.T) {
	planned := 0
	for _, goal := range goals() {
		plan, err := Plan(goal)
		if err != nil {
			if !errors.As(err, new(*GoalError)) {
				t.Errorf("Plan(%+v) = %v", goal, err)
			}
			continue
		}
		planned++
		goal, _ = goal.complete()
		if goal.FalseCandidates == 0 && plan.Binding == "" && plan.Geometry.Bits < maxBits { // which is no budget
			goal.FalseCandidates = fewEnough * goal.others()
		}
		if err := goal.exceeded(plan); err != nil || plan.FalsePositiveRate > goal.rate() {
			t.Errorf("Plan(%+v) = %+v breaks %v", goal, plan, err)
		}
		m, k := plan.Geometry.Bits, plan.Geometry.Hashes
		sizes := []uint64{m - 1, m, m + 1, m - m/100, m + m/100, m / 2, 2 * m}
		for _, hashes := range []int{k - 1, k, k + 1} {
			if hashes < 1 || hashes > maxHashes {
				continue
			}
			if least, ok := fewestBits(goal.Objects, hashes, goal.rate()); ok {
				sizes = append(sizes, least, least+1)
			}
			for _, bits := range sizes {
				if bits < 1 || bits > maxBits {
					continue
				}
				other := goal.evaluate(bits, hashes)
				if other.FalsePositiveRate <= goal.rate() && goal.exceeded(other) == nil && goal.better(other, plan) {
					t.Fatalf("Plan(%+v) = %+v, but m=%d k=%d is better: %+v", goal, plan, bits, hashes, other)
				}
			}
		}
	}
	if planned < 150 {
		t.Errorf("only %d goals were possible", planned)
	}
}

// TestPlansOfGivenHashes: of the plans with each number of hashes, one is the best.
func TestPlansOfGivenHashes(t *testing.T) {
	for _, goal := range []Goal{
		{Objects: 200_000, Peers: 8, MemoryBytes: 1 << 20},
		{Objects: 200_000, Peers: 8, Churn: 20, FalseCandidates: 1, Resend: 1},
		{Objects: 1_000, FalseCandidates: 0.01, Churn: 1},
	} {
		best, err := Plan(goal)
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for goal.Hashes = 1; goal.Hashes <= maxHashes; goal.Hashes++ {
			plan, err := Plan(goal)
			if err != nil {
				continue
			}
			seen = seen || plan == best
			if plan.Geometry.Hashes != goal.Hashes || goal.better(plan, best) {
				t.Errorf("Plan(%+v) = %+v, and of any number %+v", goal, plan, best)
			}
		}
		if !seen {
			t.Errorf("the best plan for %+v is not among those with a given number of hashes: %+v", goal, best)
		}
	}
	for _, hashes := range []int{-1, maxHashes + 1} {
		if _, err := Plan(Goal{Objects: 1, FalseCandidates: 0.1, Hashes: hashes}); err == nil || errors.As(err, new(*GoalError)) {
			t.Errorf("Plan with %d hashes = %v", hashes, err)
		}
	}
}

// TestImpossibleGoals: a goal becomes possible if the named budget is raised to the given
// value, and not with a little less.
func TestImpossibleGoals(t *testing.T) {
	refused := 0
	for _, goal := range append(goals(),
		Goal{Objects: 1e6, Peers: 100, Churn: 100, Interval: time.Second, FalseCandidates: 0.1, BytesPerSecond: 1000},
		Goal{Objects: 1e6, Peers: 100, FalseCandidates: 0.1, MemoryBytes: 1000},
		Goal{Objects: 1e6, Peers: 100, FalseCandidates: 0.1, SnapshotBytes: 1000},
		Goal{Objects: 1e6, Peers: 100, FalseCandidates: 0.1, Threshold: 0.02, DeltaBytes: 1000},
		Goal{Objects: 100_000, Peers: 100, FalseCandidates: 1e-300},
	) {
		_, err := Plan(goal)
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
			case "SnapshotBytes":
				g.SnapshotBytes = int64(math.Ceil(impossible.Need * by))
			case "DeltaBytes":
				g.DeltaBytes = int64(math.Ceil(impossible.Need * by))
			case "FalseCandidates":
				g.FalseCandidates = impossible.Need * by
			}
			return g
		}
		if _, err := Plan(raise(1.001)); err != nil {
			t.Errorf("Plan(%+v): %v; with that: %v", goal, impossible, err)
		}
		if _, err := Plan(raise(0.9)); err == nil {
			t.Errorf("Plan(%+v): %v, but less is enough", goal, impossible)
		}
	}
	if refused < 4 {
		t.Errorf("only %d goals were refused", refused)
	}
	for _, goal := range []Goal{
		{}, {Objects: 1}, {Objects: 1, FalseCandidates: -1}, {Objects: 1, MemoryBytes: 1, Peers: 1},
		{Objects: 1, MemoryBytes: 1, Threshold: 2}, {Objects: 1, MemoryBytes: 1, Churn: math.NaN()},
		{Objects: 1, MemoryBytes: 1, Interval: -1}, {Objects: 1 << 60, MemoryBytes: 1},
	} {
		if _, err := Plan(goal); err == nil || errors.As(err, new(*GoalError)) {
			t.Errorf("Plan(%+v) = %v", goal, err)
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
		plan, err := Plan(goal)
		if err != nil || plan.Interval < c.least || plan.Interval > c.most || plan.Binding != c.binding || plan.BytesPerSecond > c.budget {
			t.Errorf("for %v bytes a second: %+v, %v", c.budget, plan, err)
		}
		fill, _ := plan.Geometry.predict(goal.Objects)
		full, _ := goal.complete()
		for part := full.leastShare() * shareParts; part < plan.Threshold*shareParts; part++ {
			other := plan
			if full.traffic(&other, fill, part/shareParts); other.BytesPerSecond <= c.budget {
				t.Fatalf("for %v bytes a second: a share of %v, though %v takes %v", c.budget, plan.Threshold, other.Threshold, other.BytesPerSecond)
			}
		}
	}
}

// TestPlanPrefersOneHash: one hash is best whenever deltas are sent. If only snapshots are
// sent, many hashes are cheaper at high rates, as Plan says.
func TestPlanPrefersOneHash(t *testing.T) {
	for _, f := range []float64{0.5, 0.3, 0.1, 0.07, 0.02, 1e-3, 1e-6} {
		for _, resend := range []float64{0, 0.1, 1} {
			plan, err := Plan(Goal{Objects: 1e6, Churn: 100, Interval: time.Minute, FalseCandidates: f, Resend: resend})
			if err != nil {
				t.Fatal(err)
			}
			if many := plan.Geometry.Hashes > 1; many != (resend == 1 && f > 0.08) {
				t.Errorf("f=%v, Resend %v: %v", f, resend, plan.Geometry)
			}
		}
	}
}

// TestPlanPredicts builds what was planned and measures it.
func TestPlanPredicts(t *testing.T) {
	const n = 50_000
	for _, goal := range []Goal{
		{Objects: n, Peers: 11, Churn: 10, Interval: time.Minute, FalseCandidates: 0.01},
		{Objects: n, Peers: 11, Churn: 100, Threshold: 0.02, FalseCandidates: 0.3},
		{Objects: n, Churn: 10, MemoryBytes: n, Threshold: 0.01},
		{Objects: n, Churn: 10, SnapshotBytes: n, Threshold: 0.01},
		{Objects: n, DeltaBytes: n / 30, Threshold: 0.01},
	} {
		plan, err := Plan(goal)
		if err != nil {
			t.Fatal(err)
		}
		replace := int(math.Round(plan.Threshold * n))
		v := versionsInTurn(t, plan.Geometry, n, replace, 2)
		d, _ := Diff(v[0], v[1])
		others := float64(max(goal.Peers, 2) - 1)
		for _, c := range []struct {
			name               string
			got, want, per100k float64
		}{
			{"rate", v[0].FalsePositiveRate(), plan.FalsePositiveRate, 3_000},
			{"snapshot", float64(len(v[0].AppendTo(nil))), plan.SnapshotBytes, 500},
			{"delta", float64(len(encode(t, d, v[0]))), plan.DeltaBytes, 3_000},
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

// versionsInTurn is versions, except that every key is replaced at most once.
func versionsInTurn(t testing.TB, g Geometry, n, replace, count int) (out []*Filter) {
	r := random(g.Bits)
	keys := randomKeys(r, n)
	c := counting(t, g, keys...)
	for i := range count {
		out = append(out, c.Advance())
		for j := range replace {
			c.Remove(keys[i*replace+j])
			c.Add(Key(r.Uint64()))
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
		{Goal{Objects: 20, Churn: 0.5, FalseCandidates: 0.01, Threshold: 1e-6}, 1. / 20, 2 * time.Second},
		{Goal{Objects: 1_000, Churn: 1_000, FalseCandidates: 0.01}, 1, time.Second},
		{Goal{Objects: 1_000, Churn: 1_000, FalseCandidates: 0.01, Threshold: 0.1}, 0.1, 100 * time.Millisecond},
		{Goal{Objects: 100_000, Churn: 100, FalseCandidates: 0.01}, 0.01, 10 * time.Second},
	} {
		plan, err := Plan(c.goal)
		if err != nil {
			t.Errorf("Plan(%+v) = %v", c.goal, err)
			continue
		}
		if math.Abs(plan.Threshold-c.threshold) > 1e-3*c.threshold || (plan.Interval-c.interval).Abs() > c.interval/1000 {
			t.Errorf("Plan(%+v) publishes after %v or a share of %v, want %v and %v", c.goal, plan.Interval, plan.Threshold, c.interval, c.threshold)
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
		{"snapshot", func(g *Goal) { g.FalseCandidates, g.SnapshotBytes, g.SnapshotCertainty = 0, 1<<20, 0.99999 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			goal := base
			c.with(&goal)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Plan(goal); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N), "µs/plan")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestPlanForADelta: given the size of an update, the plan has the fewest false positives of all numbers of
// hashes and bits. This is the problem of Mitzenmacher's section IV.
func TestPlanForADelta(t *testing.T) {
	for _, goal := range []Goal{
		{Objects: 10_000, Threshold: 0.05, DeltaBytes: 1500},
		{Objects: 100_000, Threshold: 0.01, DeltaBytes: 2500},
		{Objects: 100_000, Threshold: 0.5, DeltaBytes: 60_000},
	} {
		plan, err := Plan(goal)
		if err != nil {
			t.Errorf("Plan(%+v) = %v", goal, err)
			continue
		}
		if plan.DeltaBytes > float64(goal.DeltaBytes) || plan.Binding != "DeltaBytes" {
			t.Errorf("Plan(%+v) has updates of %.0f bytes, bound by %q", goal, plan.DeltaBytes, plan.Binding)
		}
		all, _ := goal.complete()
		for k := 1; k <= 12; k++ {
			for m := float64(goal.Objects); m < maxBits; m *= 1.01 {
				if other := all.evaluate(uint64(m), k); other.DeltaBytes <= float64(goal.DeltaBytes) &&
					other.FalsePositiveRate < plan.FalsePositiveRate*(1-1e-9) {
					t.Fatalf("Plan(%+v) = %v, %.4g; better is %v, %.4g", goal, plan.Geometry, plan.FalsePositiveRate, other.Geometry, other.FalsePositiveRate)
				}
			}
		}
	}
}

// TestPlanForRaisedLimits: a hundred million objects are planned for receivers that take them.
func TestPlanForRaisedLimits(t *testing.T) {
	goal := Goal{Objects: 100_000_000, FalseCandidates: 0.001}
	if plan, err := Plan(goal); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Plan = %v, %v", plan, err)
	}
	goal.Receivers = Limits{Bytes: 256 << 20, Memory: 1 << 30}
	plan, err := Plan(goal)
	if err != nil || plan.FalseCandidates > 0.001 {
		t.Fatalf("Plan = %v, %v", plan, err)
	}
	if err := goal.Receivers.Accept(plan.Geometry, goal.Objects); err != nil {
		t.Error(err)
	}
}
