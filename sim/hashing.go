package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"

	"github.com/summarycache/summarycache/digest"
)

var _ = experiments.add(Experiment{
	Name:    "hashing",
	Summary: "the documents' hash schemes: false positives against prediction, chi-square, and bad hashes",
	Seconds: 26,
	Flags: func(flags *flag.FlagSet) runner {
		n, shapes := keysFlag(flags), shapesFlag(flags)
		return func(ctx context.Context, job *Job) error {
			all, err := hashingInputs(*n, *shapes)
			if err != nil {
				return err
			}
			return runHashing(ctx, job, all)
		}
	},
})

// hashingLookups is how many absent keys are looked up for each scheme and
// geometry.
const hashingLookups = 4_000_000

type hashingGeometry struct {
	n  uint64
	mn float64
	k  int
}

var hashingGeometries = []hashingGeometry{
	{10_000, 8, 5}, {10_000, 14, 2}, {10_000, 48, 3}, {10_000, 16, 11}, {10_000, 10, 4},
	{1_000, 10, 4}, {100, 8, 5}, {100, 16, 11},
}

// hashingPositions bounds the array of one filter, and the arrays of all filters of a scheme
// together. Each array is cleared and filled, which would take most of the time with few keys
// and a large m/n.
const hashingPositions = 1_000_000_000

// hashingInputs returns the geometries to try: each of the user's shapes for each number of
// keys.
func hashingInputs(keys []int, shapes []shape) (all []hashingGeometry, err error) {
	if len(keys)+len(shapes) == 0 {
		return hashingGeometries, nil
	}
	for _, n := range or(keys, []int{10_000, 100}) {
		for _, g := range or(shapes, []shape{{8, 5}, {14, 2}, {16, 11}}) {
			if m := float64(n) * g.mn; m > hashingPositions {
				return nil, fmt.Errorf("--n %d with --geometry %g:%d: %.0f positions, want %d at the most", n, g.mn, g.k, m, hashingPositions)
			}
			all = append(all, hashingGeometry{uint64(n), g.mn, g.k})
		}
	}
	return all, nil
}

// filtersOf returns how many filters of m positions and n keys to try, 2 or more, and how many
// absent keys to look up in each: ten times n, or more if the bound on the arrays allows fewer
// filters.
func filtersOf(n, m uint64, lookups int) (filters, each int) {
	each = max(1, min(int(10*n), lookups/2))
	filters = max(2, (lookups+each-1)/each)
	if most := max(2, int(hashingPositions/m)); filters > most {
		filters, each = most, (lookups+most-1)/most
	}
	return filters, each
}

func runHashing(ctx context.Context, job *Job, geometries []hashingGeometry) error {
	lookups := hashingLookups
	if job.Trials > 0 {
		lookups = job.Trials
	}
	type run struct {
		geometry hashingGeometry
		scheme   hashScheme
		result   hashingResult
	}
	var runs []run
	for _, g := range geometries {
		for _, s := range hashSchemes {
			if s.most == 0 || g.k <= s.most {
				runs = append(runs, run{geometry: g, scheme: s})
			}
		}
	}
	err := job.each(ctx, len(runs), "schemes tried", func(i int) error {
		r := &runs[i]
		r.result = r.scheme.try(job, uint64(i), r.geometry, lookups)
		return nil
	})
	if err != nil {
		return err
	}
	table := job.Table("Schemes: false positives and chi-square, each in standard deviations from what independent uniform positions give",
		Column{Name: "n"}, Column{Name: "m"}, Column{Name: "k"}, Column{Name: "scheme"},
		Column{Name: "predicted", Head: "f predicted", Format: "%.5g"}, Column{Name: "measured", Head: "f measured", Format: "%.5g", Loose: AnyValue},
		Column{Name: "excess", Head: "excess %", Format: "%+.2f", Loose: AnyValue}, Column{Name: "sd", Head: "in sd", Format: "%+.1f", Loose: AnyValue},
		Column{Name: "chi_square", Head: "chi-square in sd", Format: "%+.1f", Loose: AnyValue})
	for _, r := range runs {
		table.Row(r.geometry.n, r.result.m, r.geometry.k, r.scheme.name, figures(r.result.predicted, 8), measure{figures(r.result.f, 6), 1.96 * r.result.sd},
			figures(100*(r.result.f/r.result.predicted-1), 4), figures((r.result.f-r.result.predicted)/r.result.sd, 3), figures(r.result.chi, 3))
	}
	const few, fewM, fewK = 100, 1600, 11
	exact := exactFalsePositives(fewM, few, fewK)
	table.Note("Predicted exactly for the size of the array, which is a prime, a power of two or a multiple of k where the scheme needs that: (1-p)^k is %.1f %% lower at 100 keys and k=11.",
		less(falsePositives(fewM/few, fewK), exact))
	table.Note("Chi-square: over %d equal bins of the array, less its expectation, in its standard deviations.", chiBins)
	table.Note("Partitioned is worse than standard, as the lecture says: by %.1f %% at 100 keys and k=11, by %.3f %% at 10,000.",
		-less(partitioned(fewM, few, fewK), exact), -less(partitioned(160_000, 10_000, fewK), exactFalsePositives(160_000, 10_000, fewK)))
	table.Note("Two mod prime: with probability 1-(1-1/p^2)^n some key has both hashes of another key, which the lecture ignores: %.2g at 100 keys and k=11 (p=149), ten times f; %.2g at 10,000 (p=14549), a tenth of f.",
		sameHashes(149, 100), sameHashes(14_549, 10_000))
	badHashes(job, lookups)
	grothoff(job, lookups)
	spyropoulos(job)
	return ctx.Err()
}

// partitioned is f if each hash has m/k positions of its own.
func partitioned(m, n uint64, k int) float64 {
	return math.Pow(-math.Expm1(float64(n)*math.Log1p(-float64(k)/float64(m))), float64(k))
}

// sameHashes is the probability that one of n keys has the same two hashes modulo p as another
// key.
func sameHashes(p, n float64) float64 { return -math.Expm1(n * math.Log1p(-1/(p*p))) }

// A hashingResult has the measurements of a scheme.
type hashingResult struct {
	m         uint64
	predicted float64 // f of independent uniform positions, as many
	f, sd     float64 // mean over filters, and its standard deviation
	chi       float64 // of positions, in standard deviations
}

// try fills filters with names and looks up as many others.
func (s hashScheme) try(job *Job, label uint64, g hashingGeometry, lookups int) hashingResult {
	r := hashingResult{m: uint64(math.Round(float64(g.n) * g.mn))}
	if s.fit != nil {
		r.m = s.fit(r.m, g.k)
	}
	r.predicted = exactFalsePositives(r.m, g.n, g.k)
	filters, each := filtersOf(g.n, r.m, lookups)
	rates := make([]float64, filters)
	var bins chiSquare
	for i := range filters {
		names := nameSource{prefix: "http://www" + strconv.FormatUint(label, 10) + ".example.com/" + strconv.Itoa(i) + "/", seed: job.Seed}
		inside := s.filter(r.m, g.k, int(g.n), &names, &bins)
		hits := 0
		for range each {
			name, key := names.next()
			if inside(name, key) {
				hits++
			}
		}
		rates[i] = float64(hits) / float64(each)
	}
	r.f, r.sd = meanAndError(rates)
	r.chi = bins.deviations()
	return r
}

// filter adds n names, counts their positions in bins, and returns a function that looks a name
// up.
func (s hashScheme) filter(m uint64, k, n int, names *nameSource, bins *chiSquare) func(name []byte, key uint64) bool {
	buf := make([]uint64, k)
	words := newBitmap(m)
	for range n {
		name, key := names.next()
		positions := s.positions(buf, name, key, m)
		for _, p := range positions {
			bins.add(p, m)
		}
		words.set(positions...)
	}
	return func(name []byte, key uint64) bool { return words.hasAll(s.positions(buf, name, key, m)) }
}

// nameSource makes names with increasing numbers, and hashes them as a cache does.
type nameSource struct {
	prefix string
	seed   uint64
	count  uint64
	buf    []byte
}

// next returns the next name, valid until the next call, and its key.
func (s *nameSource) next() (name []byte, key uint64) {
	s.buf = strconv.AppendUint(append(s.buf[:0], s.prefix...), s.count, 10)
	s.count++
	return s.buf, uint64(digest.KeyOf(s.seed, s.buf))
}

const chiBins = 256

// chiSquare counts positions in bins of equal width.
type chiSquare struct {
	bins  [chiBins]uint64
	m     uint64
	total uint64
}

func (c *chiSquare) add(p, m uint64) {
	c.bins[p*chiBins/m]++
	c.m = m
	c.total++
}

// deviations returns the statistic less its expectation for uniform positions, in standard
// deviations.
func (c *chiSquare) deviations() float64 {
	sum, first := 0.0, uint64(0)
	for i, observed := range c.bins {
		// Bin i holds the positions p with p·bins/m = i.
		after := (uint64(i+1)*c.m + chiBins - 1) / chiBins
		expected := float64(c.total) * float64(after-first) / float64(c.m)
		first = after
		if expected > 0 {
			sum += (float64(observed) - expected) * (float64(observed) - expected) / expected
		}
	}
	const freedom = chiBins - 1
	return (sum - freedom) / math.Sqrt(2*freedom)
}
