package digest

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A Goal is what an operator knows and wants. Zero means not given, for every field but
// Objects. FalseCandidates or one of the budgets must be given.
type Goal struct {
	Objects uint64  // that one peer holds
	Peers   int     // in the cluster, this one included; 2 if zero
	Churn   float64 // objects that one peer replaces in a second

	// Hashes is the number of hashes of every digest, at most 32. If it is not
	// given, Plan picks the best.
	Hashes int

	// An update is due when Interval has passed or a share Threshold (0 to 1) of the
	// objects was replaced, whichever comes first, but not before one object was. If
	// neither is given, Plan picks the smallest threshold that the traffic budget allows,
	// or 1 % if there is no such budget, with at most one update a second.
	Interval  time.Duration
	Threshold float64
	// Resend is the share of updates, 0 to 1, that must be sent as snapshots: to peers
	// that joined, or missed more than the publisher remembers.
	Resend float64

	FalseCandidates   float64 // per lookup, of all peers together, at most
	BytesPerSecond    float64 // of digests that one peer receives from all others, at most
	MemoryBytes       int64   // for the replicas of all other peers, at most
	SnapshotBytes     int64   // of a filter on the wire, at most
	DeltaBytes        int64   // of an update, at most; without Churn, of one of a share Threshold (Mitzenmacher, section IV)
	SnapshotCertainty float64 // probability that a filter of Objects keys takes no more; 0.999 if zero

	Receivers Limits // of those that decode the digests; zero means the defaults
}

// A Design is a plan for a [Goal], with what to expect of it.
type Design struct {
	Geometry  Geometry
	Coding    string        // of a snapshot
	Threshold float64       // share of objects replaced between updates
	Interval  time.Duration // between updates; zero if nothing ever changes

	FalsePositiveRate float64 // of one digest
	FalseCandidates   float64 // per lookup, of all peers
	SnapshotBytes     float64 // expected
	SnapshotBound     float64 // not exceeded, with the certainty wanted
	DeltaBytes        float64 // expected
	BytesPerSecond    float64 // received by one peer from all others, with the notices of updates and the headers of IP and UDP
	MemoryBytes       float64 // for the replicas of all others
	Binding           string  // the budget that keeps the plan from being better: a field of Goal
}

// A GoalError says which budget to raise, and to what, for a goal to become
// possible with the rest of it unchanged.
type GoalError struct {
	Budget     string // a field of Goal
	Have, Need float64
}

func (e *GoalError) Error() string {
	return fmt.Sprintf("digest: no plan meets the goal: %s is %.4g and would have to be %.4g", e.Budget, e.Have, e.Need)
}

// Plan finds the cheapest geometry for a goal. If FalseCandidates is given, that is the
// geometry of least traffic with at most so many of them; otherwise it is the geometry with the
// fewest false positives that all budgets allow. For each number of hashes Plan computes the
// best number of bits, and no integer neighbour is better. Expected sizes are those of an ideal
// coder; ours takes at most a thousandth more. SnapshotBound adds what our coder takes above
// the ideal and the variation of the number of set positions: 2 % of the bytes at 1,000 keys,
// 0.5 % at 10,000, 0.12 % at 100,000. Plan is a pure function and takes 0.05 to 0.5 ms. The
// error is a [*GoalError], or wraps [ErrTooLarge] if goal.Receivers would refuse the filter, as those
// with the default [Limits] refuse one of a hundred million keys.
//
// Where deltas are sent, one hash is the cheapest at every rate. Where everything is sent
// as snapshots (Resend is 1, or nothing changes) and more than about 7 % false positives
// are allowed, a nearly full filter of many hashes is cheaper: sizes fall towards both
// ends of k (Mitzenmacher, section II-B). It saves up to a seventh of the bytes and takes
// several times the memory. To rule it out, give MemoryBytes or Hashes. With less than a
// byte of memory a key, several hashes in a bitmap are best.
func Plan(goal Goal) (Design, error) {
	goal, err := goal.complete()
	if err != nil {
		return Design{}, err
	}
	plan, err := goal.plan()
	if err != nil {
		return Design{}, err
	}
	fill, _ := plan.Geometry.predict(goal.Objects)
	if err := goal.Receivers.Accept(plan.Geometry, uint64(fill*float64(plan.Geometry.Bits))); err != nil {
		return Design{}, fmt.Errorf("digest: a plan that receivers refuse unless their limits are raised: %w", err)
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

// best tries every number of hashes that the goal allows.
func (g Goal) best() (Design, error) {
	var best Design
	var refusal *GoalError
	least, most := 1, maxHashes
	if g.Hashes != 0 {
		least, most = g.Hashes, g.Hashes
	}
	for k := least; k <= most; k++ {
		if best.Geometry.Bits != 0 && g.FalseCandidates == 0 && g.hopeless(k, best.FalsePositiveRate) {
			continue
		}
		plan, err := g.withHashes(k)
		if err != nil {
			refusal = milder(refusal, err)
			continue
		}
		if best.Geometry.Bits == 0 || g.better(plan, best) {
			best = plan
		}
	}
	if best.Geometry.Bits == 0 {
		return Design{}, refusal
	}
	return best, nil
}

// complete checks a goal and fills in what was not given.
func (g Goal) complete() (Goal, error) {
	var errs []error
	need := func(ok bool, field string, value any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("digest: goal: %s is %v, want %s", field, value, want))
		}
	}
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	sound := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	if g.Peers == 0 {
		g.Peers = 2
	}
	if g.SnapshotCertainty == 0 {
		g.SnapshotCertainty = 0.999
	}
	need(g.Objects > 0 && g.Objects <= maxPieced, "Objects", g.Objects, "1 to 2^30")
	need(g.Peers >= 2 && g.Peers <= 1<<24, "Peers", g.Peers, "2 to 2^24")
	need(sound(g.Churn), "Churn", g.Churn, "0 or more objects a second")
	need(g.Hashes >= 0 && g.Hashes <= maxHashes, "Hashes", g.Hashes, fmt.Sprintf("0 to %d", maxHashes))
	need(g.Interval >= 0, "Interval", g.Interval, "0 or more")
	need(share(g.Threshold), "Threshold", g.Threshold, "0 to 1")
	need(share(g.Resend), "Resend", g.Resend, "0 to 1")
	need(sound(g.FalseCandidates), "FalseCandidates", g.FalseCandidates, "0 or more")
	need(sound(g.BytesPerSecond), "BytesPerSecond", g.BytesPerSecond, "0 or more")
	need(g.MemoryBytes >= 0, "MemoryBytes", g.MemoryBytes, "0 or more")
	need(g.SnapshotBytes >= 0, "SnapshotBytes", g.SnapshotBytes, "0 or more")
	need(g.DeltaBytes >= 0, "DeltaBytes", g.DeltaBytes, "0 or more")
	need(g.SnapshotCertainty > 0 && g.SnapshotCertainty < 1, "SnapshotCertainty", g.SnapshotCertainty, "between 0 and 1")
	if g.FalseCandidates == 0 && g.BytesPerSecond == 0 && g.MemoryBytes == 0 && g.SnapshotBytes == 0 && g.DeltaBytes == 0 {
		errs = append(errs, errors.New("digest: goal: neither FalseCandidates nor a budget is given"))
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

// better reports whether a is better than b: whether it has less traffic or fewer false
// positives, depending on the goal. If these are equal, less memory is better.
func (g Goal) better(a, b Design) bool {
	x, y := a.FalsePositiveRate, b.FalsePositiveRate
	if g.FalseCandidates > 0 {
		x, y = a.cost(), b.cost()
		if g.pacing() {
			x, y = a.Threshold, b.Threshold
		}
	}
	if math.Abs(x-y) > 1e-12*(x+y) {
		return x < y
	}
	return a.MemoryBytes < b.MemoryBytes
}

// cost is the traffic, or the size of a snapshot where nothing changes.
func (p Design) cost() float64 {
	if p.BytesPerSecond > 0 {
		return p.BytesPerSecond
	}
	return p.SnapshotBytes
}

// milder returns the refusal whose budget must grow less.
func milder(a, b *GoalError) *GoalError {
	if a == nil || b.Need/b.Have < a.Need/a.Have {
		return b
	}
	return a
}
