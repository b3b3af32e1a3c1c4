package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
)

var _ = experiments.add(Experiment{
	Name:    "trials",
	Summary: "Mitzenmacher's simulations, or others: mean, deviation and maximum of the coded size",
	Seconds: -1,
	Flags: func(flags *flag.FlagSet) runner {
		n, c, shapes := keysFlag(flags), sharesFlag(flags), shapesFlag(flags)
		return func(ctx context.Context, job *Job) error {
			simulations, err := ownSimulations(ownInputs(*n, *c, *shapes))
			if err != nil {
				return err
			}
			return runTrials(ctx, job, or(simulations, paperSimulations))
		}
	},
})

const (
	paperTrials  = 100_000
	trialsMemory = 2 << 30 // bytes that the arrays of all workers may take
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

func runTrials(ctx context.Context, job *Job, simulations []simulation) error {
	trials := job.Trials
	if trials == 0 {
		trials = paperTrials
	}
	const each = 12 // bytes of results
	if need := float64(each * len(simulations) * trials); need > trialsMemory {
		return usagef("--trials %d needs %.3g GB for the results: more than the %.3g GB that trials may take", trials, need/1e9, trialsMemory/1e9)
	}
	results := make([][]sizes, len(simulations)) // by trial
	for i := range results {
		results[i] = make([]sizes, trials)
	}
	err := job.each(ctx, len(simulations)*trials, "trials", func(i int) error {
		which, trial := i/trials, i%trials
		results[which][trial] = simulations[which].trial(job.source(2, uint64(which), uint64(trial)))
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

// ownSimulations returns the simulations that the flags ask for.
func ownSimulations(inputs []codecInput) (all []simulation, err error) {
	for _, in := range inputs {
		s := simulation{n: uint64(in.n), m: uint64(math.Round(in.mn * float64(in.n))), k: in.k, c: in.c}
		// Arrays of bits and, in the worst case, lists of 8 bytes for each bit set.
		workers := float64(runtime.GOMAXPROCS(0))
		need := workers * (3*float64(s.m)/8 + 24*min(float64(s.m), float64(s.n)*float64(s.k)))
		if s.c > 0 {
			need += workers * 8 * float64(s.n) * float64(s.k)
		}
		if need > trialsMemory {
			return nil, usagef("%s needs %.3g GB for %.0f workers: more than the %.3g GB that trials may take", s.name(), need/1e9, workers, trialsMemory/1e9)
		}
		all = append(all, s)
	}
	return all, nil
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
		return deltaBits(mn, k, s.c) * float64(s.n) / 8
	}
	return sentBits(mn, k) * float64(s.n) / 8
}

func printSizes(job *Job, simulations []simulation, results [][]sizes) {
	table := job.Table(fmt.Sprintf("Coded size in bytes over %d trials", len(results[0])),
		Column{Name: "simulation"},
		Column{Name: "theory", Head: "m·H", Format: "%.1f"}, Column{Name: "paper_theory", Head: "paper's m·H", Format: "%.5g"},
		Column{Name: "limit", Head: "log2 C(m,x)", Format: "%.1f", Loose: 0.002}, Column{Name: "appendix", Head: "appendix's L", Format: "%.1f", Loose: 0.002},
		Column{Name: "mean", Format: "%.2f", Loose: 0.002}, Column{Name: "paper_mean", Head: "paper's mean", Format: "%.5g"},
		Column{Name: "sd", Format: "%.3f", Loose: 0.5}, Column{Name: "paper_sd", Head: "paper's sd", Format: "%.3f"},
		Column{Name: "max", Loose: 0.02}, Column{Name: "paper_max", Head: "paper's max", Format: "%.5g"},
		Column{Name: "budget", Format: "%.5g"}, Column{Name: "over_budget", Head: "over", Loose: AnyValue},
		Column{Name: "context", Head: "against the old", Format: "%.2f", Loose: 0.005})
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
			bits := log2Choose(s.m, uint64(z.ones))
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
			context = figures(summarise(results[i], func(z sizes) uint32 { return z.context }).mean, 8)
		}
		table.Row(s.name(), figures(s.expected(), 8), orNil(s.theory), figures(limit/trials, 8), figures(appendix/trials, 8),
			figures(coded.mean, 8), orNil(s.mean), figures(coded.sd, 6), orNil(s.sd), coded.most, orNil(s.most),
			orNil(s.budget), over, context)
	}
	table.Note("Coded by package arith's adaptive method, which knows m and x. log2 C(m,x) is the least size of x positions with any coder, as the mean over the trials.")
	table.Note("The paper's sizes include the overhead of its program: 14 to 19 bytes more than m·H. Its appendix's L is for a coder that does not know x in advance.")
}

func printOnes(job *Job, simulations []simulation, results [][]sizes) {
	table := job.Table("How far the number of ones strays, and what Theorem 1 of the paper allows",
		Column{Name: "simulation"}, Column{Name: "mean", Format: "%.1f", Loose: 0.001}, Column{Name: "sd", Format: "%.2f", Loose: 0.5},
		Column{Name: "predicted_sd", Head: "occupancy sd", Format: "%.2f"},
		Column{Name: "farthest", Head: "farthest from m(1-p)", Format: "%.0f", Loose: AnyValue}, Column{Name: "azuma", Head: "Azuma's bound on that", Format: "%.3g", Loose: AnyValue})
	for i, s := range simulations {
		if s.c > 0 {
			continue
		}
		load := float64(s.n) * float64(s.k) / float64(s.m)
		expected := -float64(s.m) * math.Expm1(-load)
		ones := summarise(results[i], func(z sizes) uint32 { return z.ones })
		farthest := max(float64(ones.most)-expected, expected-float64(ones.least))
		bound := min(1, 2*math.Exp(-farthest*farthest/(2*float64(s.n)*float64(s.k))))
		table.Row(s.name(), figures(ones.mean, 8), figures(ones.sd, 6), figures(onesSD(float64(s.m), load), 6), figures(farthest, 4), figures(bound, 4))
	}
	table.Note("The bound is right and far from tight: the deviation is that of the occupancy problem, sqrt(m·p·(1-(1+kn/m)·p)).")
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
	s.mean, s.sd = meanAndError(numbers)
	s.sd *= math.Sqrt(float64(len(numbers)))
	return s
}

// log2Choose is the binary logarithm of the number of sets of x out of m positions.
func log2Choose(m, x uint64) float64 {
	lg := func(v uint64) float64 {
		l, _ := math.Lgamma(float64(v) + 1)
		return l
	}
	return (lg(m) - lg(x) - lg(m-x)) / math.Ln2
}
