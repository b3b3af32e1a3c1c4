package papers

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/summarycache/summarycache/sim/lab"
)

var countersExperiment = lab.Experiment{
	Name:    "counters",
	Summary: "four-bit counters: the overflow bound, and false negatives if full ones are decremented",
	Seconds: 8,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n := lab.KeysFlag(flags, 10_000)
		return func(ctx context.Context, job *lab.Job) error { return runCounters(ctx, job, *n) }
	},
}

const (
	fillings     = 20_000     // filters filled for the overflow bound
	churnRuns    = 30         // for each kind of counter
	churnLimit   = 20_000_000 // replacements after which a run is stopped
	perSecond    = 100        // replacements, for the time that they take
	secondsAYear = 365.25 * 86400
)

func runCounters(ctx context.Context, job *lab.Job, keys []int) error {
	fills, runs := fillings, churnRuns
	if job.Trials > 0 {
		fills, runs = job.Trials, min(job.Trials, churnRuns)
	}
	if job.Short {
		runs = 2
	}
	if err := lab.ForEach(keys, func(n int) error { return overflowBound(ctx, job, n, fills) }); err != nil {
		return err
	}
	return decremented(ctx, job, churns, runs)
}

// overflowBound compares Summary Cache's bound on the largest counter with the
// exact distribution of one counter and with filters filled at random.
func overflowBound(ctx context.Context, job *lab.Job, n, fills int) error {
	const k = 6
	m := uint64(math.Round(k * float64(n) / math.Ln2)) // half of the positions are set
	largest := make([]uint8, fills)
	err := job.Each(ctx, fills, "filters filled", func(i int) error {
		rng := job.Source(6, uint64(i))
		counts := make([]uint8, m)
		for range n * k {
			p := lab.Below(rng, m)
			counts[p]++
			largest[i] = max(largest[i], counts[p])
		}
		return nil
	})
	if err != nil {
		return err
	}
	table := job.Table(fmt.Sprintf("The largest counter after n = %d keys, k = %d, m = kn/ln 2 = %d", n, k, m),
		lab.Column{Name: "i"}, lab.Column{Name: "bound", Head: "bound m(e ln 2/i)^i", Format: "%.3g"},
		lab.Column{Name: "expected", Head: "expected counters of i or more", Format: "%.3g"},
		lab.Column{Name: "predicted", Head: "P(any) predicted", Format: "%.3g"},
		lab.Column{Name: "measured", Head: "P(any) measured", Format: "%.3g", Loose: lab.AnyValue})
	for i := 4; i <= 16; i++ {
		bound := float64(m) * math.Pow(math.E*math.Ln2/float64(i), float64(i))
		expected := float64(m) * binomialTail(uint64(n*k), 1/float64(m), i)
		reached := 0
		for _, l := range largest {
			if int(l) >= i {
				reached++
			}
		}
		var measured any
		if reached > 0 || float64(fills)*expected > 3 {
			measured = lab.Round(float64(reached)/float64(fills), 5)
		}
		table.Row(i, lab.Round(bound, 5), lab.Round(expected, 5), lab.Round(-math.Expm1(-expected), 5), measured)
	}
	expectedLargest(job, uint64(n*k), m, largest)
	table.Note("Measured on %d filters. For i = 16, which four bits cannot hold, the bound is %.3g·m, and the truth %.2g·m.",
		fills, math.Pow(math.E*math.Ln2/16, 16), binomialTail(uint64(n*k), 1/float64(m), 16))
	return nil
}

// expectedLargest compares the expected maximum that Summary Cache gives, after Gonnet, with
// the sum of the exact tails and with the measured one. The sum assumes independent counters;
// they nearly are.
func expectedLargest(job *lab.Job, draws, m uint64, largest []uint8) {
	table := job.Table("The expected maximum count", lab.Column{Name: "how"}, lab.Column{Name: "maximum", Format: "%.3f", Loose: 0.05})
	inverse := inverseGamma(float64(m))
	load := float64(draws) / float64(m)
	exact, sum := 0.0, 0.0
	for i := 1; i <= 30; i++ {
		exact -= math.Expm1(float64(m) * math.Log1p(-binomialTail(draws, 1/float64(m), i)))
	}
	for _, l := range largest {
		sum += float64(l)
	}
	table.Row("Γ⁻¹(m)·(1 + ln(kn/m)/ln Γ⁻¹(m)), the formula without its O(1/ln² Γ⁻¹(m))", lab.Round(inverse*(1+math.Log(load)/math.Log(inverse)), 5))
	table.Row("the sum of P(any counter is i or more) over i", lab.Round(exact, 5))
	table.Row("measured", lab.Round(sum/float64(len(largest)), 4))
}

// inverseGamma is the x >= 2 with Γ(x) = y.
func inverseGamma(y float64) float64 {
	low, high := 2.0, 200.0
	for range 100 {
		x := (low + high) / 2
		if log, _ := math.Lgamma(x); log < math.Log(y) {
			low = x
		} else {
			high = x
		}
	}
	return low
}

// binomialTail is the probability of at least i successes in n trials.
func binomialTail(n uint64, p float64, i int) float64 {
	sum := 0.0
	for j := i; j < i+200 && uint64(j) <= n; j++ {
		sum += binomial(n, p, j)
	}
	return sum
}

// binomial is the probability of exactly i successes in n trials.
func binomial(n uint64, p float64, i int) float64 {
	log := math.Ln2*lab.Log2Choose(n, uint64(i)) + float64(i)*math.Log(p) + float64(n-uint64(i))*math.Log1p(-p)
	return math.Exp(log)
}

// A churn replaces random keys of a filter of n keys at a constant load kn/m.
type churn struct {
	bits int // of a counter
	load float64
	n, k int
}

var churns = []churn{
	{bits: 2, load: math.Ln2, n: 1000, k: 4},
	{bits: 3, load: math.Ln2, n: 1000, k: 4},
	{bits: 4, load: 0.001, n: 1000, k: 1},
	{bits: 4, load: math.Ln2, n: 1000, k: 4},
	{bits: 4, load: 2, n: 1000, k: 4},
	{bits: 4, load: 2.5, n: 1000, k: 4},
	{bits: 4, load: 3, n: 1000, k: 4},
	{bits: 4, load: 4, n: 1000, k: 4},
	{bits: 4, load: 6, n: 1000, k: 4},
}

func (c churn) positions() uint64 { return uint64(math.Round(float64(c.n*c.k) / c.load)) }

// expected is about how many replacements it takes until an increment meets a
// full counter.
func (c churn) expected() float64 {
	full := 1<<c.bits - 1
	return 1 / (float64(c.k) * binomial(uint64(c.n*c.k), 1/float64(c.positions()), full))
}

// decremented measures how long it takes until a filter that decrements full
// counters denies a key that it holds.
func decremented(ctx context.Context, job *lab.Job, churns []churn, runs int) error {
	type outcome struct {
		churnResult
		ran bool
	}
	results := make([]outcome, len(churns)*runs)
	err := job.Each(ctx, len(results), "runs of churn", func(i int) error {
		c := churns[i/runs]
		if c.expected() < churnLimit/2 && !(job.Short && c.expected() > 1e6) {
			results[i] = outcome{c.run(job, uint64(i)), true}
		}
		return nil
	})
	if err != nil {
		return err
	}
	table := job.Table("Replacements until the first false negative, if full counters are not incremented but are decremented",
		lab.Column{Name: "bits"}, lab.Column{Name: "load", Head: "load kn/m", Format: "%.3f"}, lab.Column{Name: "k"},
		lab.Column{Name: "predicted", Head: "first overflow, predicted", Format: "%.3g"},
		lab.Column{Name: "overflow", Head: "measured", Format: "%.3g", Loose: lab.AnyValue},
		lab.Column{Name: "negative", Head: "first false negative", Format: "%.3g", Loose: lab.AnyValue},
		lab.Column{Name: "turnovers", Head: "in turnovers of the cache", Format: "%.3g", Loose: lab.AnyValue},
		lab.Column{Name: "years", Head: fmt.Sprintf("years at %d/s", perSecond), Format: "%.2g", Loose: lab.AnyValue},
		lab.Column{Name: "unfinished", Loose: lab.AnyValue},
		lab.Column{Name: "kept", Head: "false negatives if kept", Loose: 1e-9})
	for i, c := range churns {
		// The waiting times have no memory, so their mean is the total time over the number of
		// events.
		var overflow, negative, overflowed, done, kept float64
		ran := false
		for _, r := range results[i*runs : (i+1)*runs] {
			if !r.ran {
				continue
			}
			ran = true
			kept += float64(r.kept)
			if r.overflow > 0 {
				overflow, overflowed = overflow+float64(r.overflow), overflowed+1
			} else {
				overflow += churnLimit
			}
			if r.negative > 0 {
				negative, done = negative+float64(r.negative), done+1
			} else {
				negative += churnLimit
			}
		}
		row := []any{c.bits, lab.Round(c.load, 5), c.k, lab.Round(c.expected(), 4), nil, nil, nil, lab.Round(c.expected()/perSecond/secondsAYear, 4), nil, nil}
		if done > 0 {
			overflow, negative = overflow/overflowed, negative/done
			row[4], row[5], row[6] = lab.Round(overflow, 4), lab.Round(negative, 4), lab.Round(negative/float64(c.n), 4)
			row[7] = lab.Round(negative/perSecond/secondsAYear, 4)
		}
		if ran {
			row[8], row[9] = runs-int(done), int(kept)
		}
		table.Row(row...)
	}
	table.Note("%d runs each, with n = 1,000 and random keys replaced, stopped after %d replacements. A dash means that this would seldom be enough; then the years are predicted.", runs, churnLimit)
	table.Note("A load above ln 2 is that of a cache that has outgrown its filter. Kept: the same replacements with full counters never decremented; all keys are looked up at the end.")
	return nil
}

// A churnResult is the result of one run.
type churnResult struct {
	overflow int // replacements until an increment met a full counter
	negative int // until a held key was denied; 0 for never
	kept     int // keys denied at the end by counters that keep their maximum
}

// run replaces random keys until a held key is denied. It keeps three arrays: the true counts,
// the counters if full ones are decremented, and the counters if they are not.
func (c churn) run(job *lab.Job, label uint64) churnResult {
	rng := job.Source(7, label)
	m, full := c.positions(), uint16(1<<c.bits-1)
	truth, lossy, kept := make([]uint16, m), make([]uint16, m), make([]uint16, m)
	keys := make([]uint64, c.n*c.k)
	var r churnResult
	step := 0
	add := func(key []uint64) {
		for i := range key {
			p := lab.Below(rng, m)
			key[i] = p
			truth[p]++
			if lossy[p] < full {
				lossy[p]++
			} else if r.overflow == 0 {
				r.overflow = max(1, step)
			}
			kept[p] = min(full, kept[p]+1)
		}
	}
	for i := range c.n {
		add(keys[i*c.k : (i+1)*c.k])
	}
	for step = 1; step <= churnLimit && r.negative == 0; step++ {
		at := int(lab.Below(rng, uint64(c.n))) * c.k
		key := keys[at : at+c.k]
		for _, p := range key {
			truth[p]--
			if lossy[p] > 0 {
				lossy[p]--
			}
			if kept[p] < full {
				kept[p]--
			}
		}
		// The new key may set a position at which another key is denied now, so look first.
		for _, p := range key {
			if lossy[p] == 0 && truth[p] > 0 {
				r.negative = step
			}
		}
		add(key)
	}
	for i := range c.n {
		for _, p := range keys[i*c.k : (i+1)*c.k] {
			if kept[p] == 0 {
				r.kept++
				break
			}
		}
	}
	return r
}
