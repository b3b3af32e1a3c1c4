package papers

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/sim/lab"
)

var trialsExperiment = lab.Experiment{
	Name:    "trials",
	Summary: "Mitzenmacher's simulations: mean, deviation and maximum of the coded size",
	Seconds: -1,
	Run:     func(job *lab.Job) error { return runTrials(job, paperSimulations) },
}

const (
	paperTrials  = 100_000
	trialsMemory = 2 << 30 // bytes that the results may take
)

// A simulation draws filters of n keys, with k independent uniform positions in [0, m) for each
// key, and codes them. With c > 0, it codes the changes when a share c of the keys is replaced.
type simulation struct {
	n, m uint64
	k    int
	c    float64
	// The paper's numbers, in bytes; 0 if it has none.
	budget, theory, mean, sd, most float64
}

var paperSimulations = []simulation{
	{n: 10_000, m: 140_000, k: 2, budget: 10_000, theory: 9904, mean: 9920, sd: 11.375, most: 9971},
	{n: 10_000, m: 480_000, k: 3, budget: 20_000, theory: 19787, mean: 19805, sd: 14.386, most: 19865},
	{n: 10_000, m: 70_000, k: 1, budget: 5_000, most: 4998},
	{n: 10_000, m: 126_000, k: 2, mean: 9493, most: 9539},
	{n: 10_000, m: 320_000, k: 2, c: 0.05, theory: 2066.5, mean: 2090, most: 2129},
}

func runTrials(job *lab.Job, simulations []simulation) error {
	trials := job.Trials
	if trials == 0 {
		trials = paperTrials
	}
	const each = 12 // bytes of results
	if need := float64(each * len(simulations) * trials); need > trialsMemory {
		return lab.Usagef("--trials %d needs %.3g GB for the results: more than the %.3g GB that trials may take",
			trials, need/1e9, trialsMemory/1e9)
	}
	results := make([][]sizes, len(simulations)) // by trial
	for i := range results {
		results[i] = make([]sizes, trials)
	}
	err := job.Each(len(simulations)*trials, "trials", func(i int) error {
		which, trial := i/trials, i%trials
		results[which][trial] = simulations[which].trial(job.Source(2, uint64(which), uint64(trial)))
		return nil
	})
	if err != nil {
		return err
	}
	printSizes(job, simulations, results)
	if slices.ContainsFunc(simulations, func(s simulation) bool { return s.c == 0 }) {
		printOnes(job, simulations, results)
	}
	return nil
}

// name identifies the simulation in tables.
func (s simulation) name() string {
	name := fmt.Sprintf("n=%d m=%d k=%d", s.n, s.m, s.k)
	if s.c > 0 {
		name += fmt.Sprintf(" c=%g %%", 100*s.c)
	}
	return name
}

// expected is the paper's prediction of the size in bytes: z = m·H(p), or m·H(q).
func (s simulation) expected() float64 {
	mn, k := float64(s.m)/float64(s.n), float64(s.k)
	if s.c > 0 {
		return lab.DeltaBits(mn, k, s.c) * float64(s.n) / 8
	}
	return lab.SentBits(mn, k) * float64(s.n) / 8
}

func printSizes(job *lab.Job, simulations []simulation, results [][]sizes) {
	table := job.Table(fmt.Sprintf("Coded size in bytes over %d trials", len(results[0])),
		lab.Column{Name: "simulation"},
		lab.Column{Name: "theory", Head: "m·H", Format: "%.1f"},
		lab.Column{Name: "paper_theory", Head: "paper's m·H", Format: "%.5g"},
		lab.Column{Name: "limit", Head: "log2 C(m,x)", Format: "%.1f", Loose: 0.002},
		lab.Column{Name: "appendix", Head: "appendix's L", Format: "%.1f", Loose: 0.002},
		lab.Column{Name: "mean", Format: "%.2f", Loose: 0.002},
		lab.Column{Name: "paper_mean", Head: "paper's mean", Format: "%.5g"},
		lab.Column{Name: "sd", Format: "%.3f", Loose: 0.5},
		lab.Column{Name: "paper_sd", Head: "paper's sd", Format: "%.3f"},
		lab.Column{Name: "max", Loose: 0.02}, lab.Column{Name: "paper_max", Head: "paper's max", Format: "%.5g"},
		lab.Column{Name: "budget", Format: "%.5g"}, lab.Column{Name: "over_budget", Head: "over", Loose: lab.AnyValue},
		lab.Column{Name: "context", Head: "against the old", Format: "%.2f", Loose: 0.005})
	orNil := func(x float64) any {
		if x == 0 {
			return nil
		}
		return x
	}
	for i, s := range simulations {
		coded := summarise(results[i], func(z sizes) uint32 { return z.coded })
		limit, appendix, large := 0.0, 0.0, 0
		for _, z := range results[i] {
			bits := lab.Log2Choose(s.m, uint64(z.ones))
			limit += bits / 8
			appendix += (math.Ceil(bits+math.Log2(float64(s.m)+1)) + 1) / 8
			if float64(z.coded) > s.budget {
				large++
			}
		}
		trials := float64(len(results[i]))
		var over, context any
		if s.budget > 0 {
			over = large
		}
		if s.c > 0 {
			context = lab.Round(summarise(results[i], func(z sizes) uint32 { return z.context }).mean, 8)
		}
		table.Row(s.name(), lab.Round(s.expected(), 8), orNil(s.theory), lab.Round(limit/trials, 8), lab.Round(appendix/trials, 8),
			lab.Round(coded.mean, 8), orNil(s.mean), lab.Round(coded.sd, 6), orNil(s.sd), coded.most, orNil(s.most),
			orNil(s.budget), over, context)
	}
	table.Note("Coded by package arith's adaptive method, which knows m and x. log2 C(m,x) is the least size of x " +
		"positions with any coder, as the mean over the trials.")
	table.Note("The paper's sizes include the overhead of its program: 14 to 19 bytes more than m·H. Its appendix's " +
		"L is for a coder that does not know x in advance.")
}

func printOnes(job *lab.Job, simulations []simulation, results [][]sizes) {
	table := job.Table("How far the number of ones strays, and what Theorem 1 of the paper allows",
		lab.Column{Name: "simulation"}, lab.Column{Name: "mean", Format: "%.1f", Loose: 0.001},
		lab.Column{Name: "sd", Format: "%.2f", Loose: 0.5},
		lab.Column{Name: "predicted_sd", Head: "occupancy sd", Format: "%.2f"},
		lab.Column{Name: "farthest", Head: "farthest from m(1-p)", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "azuma", Head: "Azuma's bound on that", Format: "%.3g", Loose: lab.AnyValue})
	for i, s := range simulations {
		if s.c > 0 {
			continue
		}
		load := float64(s.n) * float64(s.k) / float64(s.m)
		expected := -float64(s.m) * math.Expm1(-load)
		ones := summarise(results[i], func(z sizes) uint32 { return z.ones })
		farthest := max(float64(ones.most)-expected, expected-float64(ones.least))
		bound := min(1, 2*math.Exp(-farthest*farthest/(2*float64(s.n)*float64(s.k))))
		table.Row(s.name(), lab.Round(ones.mean, 8), lab.Round(ones.sd, 6), lab.Round(lab.OnesSD(float64(s.m), load), 6), lab.Round(farthest, 4), lab.Round(bound, 4))
	}
	table.Note("The bound is right and far from tight: the deviation is that of the occupancy problem, " +
		"sqrt(m·p·(1-(1+kn/m)·p)).")
}

// A summary describes a list of whole numbers.
type summary struct {
	mean, sd    float64
	least, most uint32
}

// summarise describes one of the sizes of all trials.
func summarise(trials []sizes, value func(sizes) uint32) summary {
	s := summary{least: math.MaxUint32}
	numbers := make([]float64, len(trials))
	for i, z := range trials {
		v := value(z)
		s.least, s.most = min(s.least, v), max(s.most, v)
		numbers[i] = float64(v)
	}
	s.mean, s.sd = lab.MeanAndError(numbers)
	s.sd *= math.Sqrt(float64(len(numbers)))
	return s
}

// sizes are the results of one trial.
type sizes struct {
	coded   uint32 // bytes of the filter, or of the exclusive-or
	context uint32 // bytes of the delta coded against the old filter
	ones    uint32 // ones of the coded array
}

// trial draws one filter, or a filter and its successor, and codes it.
func (s simulation) trial(rng rand.Source) (z sizes) {
	positions := make([]uint64, s.n*uint64(s.k)) // k for each key
	for i := range positions {
		positions[i] = lab.Below(rng, s.m)
	}
	array := lab.NewBitmap(s.m)
	array.Set(positions...)
	if s.c > 0 {
		next := lab.NewBitmap(s.m)
		for i := range uint64(math.Round(s.c*float64(s.n))) * uint64(s.k) {
			positions[i] = lab.Below(rng, s.m)
		}
		next.Set(positions...)
		z.context = codedAgainst(array, next, s.m)
		for i := range array {
			array[i] ^= next[i]
		}
	}
	z.ones = array.Ones()
	z.coded = uint32(len(arith.AppendBitmap(nil, arith.Adaptive, s.m, array)))
	return z
}

// codedAgainst returns the size in bytes of a delta: the ranks of the old zeros that became
// ones, and those of the old ones that became zeros.
func codedAgainst(before, after lab.Bitmap, m uint64) uint32 {
	var sets, clears []uint64
	ones := uint64(0) // in the words before
	for i, old := range before {
		for flips := old ^ after[i]; flips != 0; flips &= flips - 1 {
			bit := uint64(bits.TrailingZeros64(flips))
			rank := ones + uint64(bits.OnesCount64(old&(1<<bit-1)))
			if old>>bit&1 == 1 {
				clears = append(clears, rank)
			} else {
				sets = append(sets, uint64(i)*64+bit-rank)
			}
		}
		ones += uint64(bits.OnesCount64(old))
	}
	code := arith.AppendSet(nil, arith.Adaptive, m-ones, sets)
	return uint32(len(arith.AppendSet(code, arith.Adaptive, ones, clears)))
}
