// Package plan chooses the geometry of a cluster's digests, and says what they cost, for peer plan.
// [For] is where to start. All digests have one hash, as those of peer run.
package plan

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
)

// A Goal is what an operator knows and wants. Zero means not given, for every field but
// Objects. FalseCandidates or one of the budgets must be given.
type Goal struct {
	Objects uint64  // that one peer holds
	Peers   int     // in the cluster, this one included; 2 if zero
	Churn   float64 // objects that one peer replaces in a second

	// An update is due when Interval has passed and something changed. If it is not given, one is due when so many
	// objects were replaced as the traffic budget allows, or 1 % if there is no such budget, at most once a second.
	Interval time.Duration

	FalseCandidates float64 // per lookup, of all peers together, at most
	BytesPerSecond  float64 // of digests that one peer receives from all others, at most
	MemoryBytes     int64   // for the replicas of all other peers, at most
}

// A Design is a plan for a [Goal], with what to expect of it.
type Design struct {
	Geometry  digest.Geometry
	Coding    string        // of a snapshot
	Threshold float64       // share of objects replaced between updates
	Interval  time.Duration // between updates; zero if nothing ever changes

	FalsePositiveRate float64 // of one digest
	FalseCandidates   float64 // per lookup, of all peers
	SnapshotBytes     float64 // expected
	SnapshotBound     float64 // not exceeded in 999 of 1,000 cases
	DeltaBytes        float64 // expected
	// received by one peer from all others, with the notices of updates and the headers of IP and UDP
	BytesPerSecond float64
	MemoryBytes    float64 // for the replicas of all others
	Binding        string  // the budget that keeps the plan from being better: a field of Goal
}

// A GoalError says which budget to raise, and to what, for a goal to become
// possible with the rest of it unchanged.
type GoalError struct {
	Budget     string // a field of Goal
	Have, Need float64
}

func (e *GoalError) Error() string {
	return fmt.Sprintf("no plan meets the goal: %s is %.4g and would have to be %.4g", e.Budget, e.Have, e.Need)
}

// For finds the cheapest geometry for a goal. If FalseCandidates is given, that is the fewest bits with at most so many
// of them; otherwise it is the most bits that all budgets allow, which have the fewest false positives. Expected sizes
// are those of an ideal coder; ours takes at most a thousandth more. SnapshotBound adds what our coder takes above
// the ideal and the variation of the number of set positions: 2 % of the bytes at 1,000 keys,
// 0.5 % at 10,000, 0.12 % at 100,000. For is a pure function and takes less than 0.1 ms. The
// error is a [*GoalError], or wraps [digest.ErrTooLarge] if receivers
// with the default [digest.Limits] refuse the filter, as they do one of 48 million keys at a rate of one in a thousand.
//
// Where deltas are sent, one hash is the cheapest at every rate (Mitzenmacher, section II-B). With less than a
// byte of memory a key, several hashes in a bitmap would have fewer false positives.
func For(goal Goal) (Design, error) {
	goal, err := goal.complete()
	if err != nil {
		return Design{}, err
	}
	plan, err := goal.plan()
	if err != nil {
		return Design{}, err
	}
	fill, _ := bloom.Predict(plan.Geometry.Bits, 1, goal.Objects)
	if err := (digest.Limits{}).Accept(plan.Geometry, uint64(fill*float64(plan.Geometry.Bits))); err != nil {
		return Design{}, fmt.Errorf("a plan that receivers refuse unless their limits are raised: %w", err)
	}
	return plan, nil
}

func (goal Goal) plan() (Design, error) {
	if goal.FalseCandidates > 0 {
		return goal.best()
	}
	// If the budgets allow fewer false positives than anybody can notice, none of them
	// is binding, and the cheapest such plan is best.
	plenty := goal
	plenty.FalseCandidates = fewEnough * goal.others()
	if plan, err := plenty.best(); err == nil {
		plan.Binding = ""
		return plan, nil
	}
	return goal.best()
}

// fewEnough is a false-positive rate below which none is worth a byte.
const fewEnough = 1e-12

// complete checks a goal and fills in what was not given.
func (g Goal) complete() (Goal, error) {
	var errs []error
	need := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("goal: %s is %v, want %s", field, value, want))
		}
	}
	sound := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	if g.Peers == 0 {
		g.Peers = 2
	}
	need(g.Objects > 0 && g.Objects <= 1<<30, "Objects", g.Objects, "1 to 2^30")
	need(g.Peers >= 2 && g.Peers <= 1<<24, "Peers", g.Peers, "2 to 2^24")
	need(sound(g.Churn), "Churn", g.Churn, "0 or more objects a second")
	need(g.Interval >= 0, "Interval", g.Interval, "0 or more")
	need(sound(g.FalseCandidates), "FalseCandidates", g.FalseCandidates, "0 or more")
	need(sound(g.BytesPerSecond), "BytesPerSecond", g.BytesPerSecond, "0 or more")
	need(g.MemoryBytes >= 0, "MemoryBytes", g.MemoryBytes, "0 or more")
	if g.FalseCandidates == 0 && g.BytesPerSecond == 0 && g.MemoryBytes == 0 {
		errs = append(errs, errors.New("goal: neither FalseCandidates nor a budget is given"))
	}
	return g, errors.Join(errs...)
}

// others is how many peers one peer receives from.
func (g Goal) others() float64 { return float64(g.Peers - 1) }

// rate is the false-positive rate that the goal allows one digest; 1 if the goal has no limit.
func (g Goal) rate() float64 {
	if g.FalseCandidates == 0 {
		return 1
	}
	return min(g.FalseCandidates/g.others(), 1)
}
