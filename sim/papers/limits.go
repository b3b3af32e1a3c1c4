package papers

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

var limitsExperiment = lab.Experiment{
	Name:    "limits",
	Summary: "limits of f for few hashes at a given size on the wire: filters, deltas and counting filters",
	Run: func(job *lab.Job) error {
		filterLimit(job)
		deltaLimit(job)
		deltaBudget(job)
		return countingSizes(job)
	},
}

// exponent is log2(1/f) per bit sent for each key, for filters with that load kn/m. The
// paper's β is 2^-exponent. bits returns z/n for an m/n and a k.
func exponent(load float64, bits func(mn, k float64) float64) float64 {
	return -load * math.Log2(-math.Expm1(-load)) / bits(1, load)
}

// filterLimit follows p, the share of zeros, to 1: section II-B.
func filterLimit(job *lab.Job) {
	const z = 8
	table := job.Table("Section II-B: filters of 8 bits a key on the wire, by their share p of zeros",
		lab.Column{Name: "ones", Head: "1-p", Format: "%.4g"},
		lab.Column{Name: "hashes", Head: "k", Format: "%.3g"},
		lab.Column{Name: "bits_per_key", Head: "m/n", Format: "%.4g"},
		lab.Column{Name: "gamma", Head: "γ", Format: "%.5f"},
		lab.Column{Name: "beta", Head: "β", Format: "%.5f"},
		lab.Column{Name: "f", Format: "%.5f"},
		lab.Column{Name: "over", Head: "f over (1/2)^8", Format: "%.3f"})
	one := 1 / arrayFor(z, 1) // the load of the filter with one hash
	for _, ones := range []float64{0.5, 0.4, 0.3, 0.2, 0.1, -math.Expm1(-one), 1e-3, 1e-6, 1e-12, 1e-100, 1e-300} {
		load := -math.Log1p(-ones)
		bits := lab.SentBits(1, load)
		beta := math.Exp2(-exponent(load, lab.SentBits))
		table.Row(lab.Round(ones, 6), lab.Round(load*z/bits, 6), lab.Round(z/bits, 6), lab.Round((1-ones)/math.Log(ones)-ones/load, 7),
			lab.Round(beta, 7), lab.Round(math.Pow(beta, z), 7), lab.Round(math.Pow(2*beta, z), 7))
	}
	table.Note("γ as in the paper, from -1/ln 2 to -1. No filter can have the k below 1 of the last rows.")
}

// deltaLimit checks the conjecture of section IV.
func deltaLimit(job *lab.Job) {
	table := job.Table("Section IV: log2(1/f) for each bit a replaced key, by the share c of the keys replaced",
		lab.Column{Name: "c", Format: "%g"},
		lab.Column{Name: "half", Head: "p = 1/2", Format: "%.4f"},
		lab.Column{Name: "inside", Head: "most, p <= 0.999", Format: "%.4f"},
		lab.Column{Name: "at", Head: "at p", Format: "%.3f"},
		lab.Column{Name: "limit", Head: "p → 1", Format: "%.4f"},
		lab.Column{Name: "holds", Head: "most as p → 1"},
		lab.Column{Name: "given_inside", Head: "given the old, most, p <= 0.999", Format: "%.4f"},
		lab.Column{Name: "given_limit", Head: "given the old, p → 1", Format: "%.4f"})
	shown := []any{0.01, 0.1, 0.5, 0.69, 0.7, 1.0}
	table.Detail = func(row []any) bool { return !slices.Contains(shown, row[0]) }
	for _, c := range []float64{0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.69, 0.7, 0.8, 1} {
		inside, at := mostExponent(xor(c))
		given, _ := mostExponent(givenOld(c))
		holds := "yes"
		if c*inside > 0.5 {
			holds = "no"
		}
		table.Row(c, lab.Round(c*exponent(math.Ln2, xor(c)), 6), lab.Round(c*inside, 6), at, 0.5, holds, lab.Round(c*given, 6), 1.0)
	}
	table.Note("β → (1/2)^(1/2c) is 0.5 here, z/(cn) bits giving f = (1/2)^(z/2cn). That it is the least β is "+
		"conjectured for c < 1/2; it holds up to c = %.4f.", conjectureReach())
	table.Note("Given the old: coded with the old filter as context, as package digest does. The share of the bits " +
		"that says which keys left then tends to zero, so the limit is f = (1/2)^(z/cn).")
}

// deltaBudget solves the optimisation problem of section IV: the least f of deltas of a given size, by k.
func deltaBudget(job *lab.Job) {
	const c = 0.01
	table := job.Table("Section IV: the least f of deltas of z/(cn) bits a replaced key, c = 0.01",
		lab.Column{Name: "bits", Head: "z/(cn)"}, lab.Column{Name: "hashes", Head: "k"},
		lab.Column{Name: "xor_mn", Head: "m/n", Format: "%.4g"}, lab.Column{Name: "xor", Head: "f", Format: "%.3g"},
		lab.Column{Name: "given_mn", Head: "given the old, m/n", Format: "%.4g"},
		lab.Column{Name: "given", Head: "f", Format: "%.3g"})
	for _, z := range []float64{26, 41} {
		for _, k := range []float64{1, 2, 3, 4, 6, 8} {
			mn, given := largestArray(c*z, k, xor(c)), largestArray(c*z, k, givenOld(c))
			table.Row(z, k, lab.Round(mn, 6), lab.Round(lab.FalsePositives(mn, k), 6), lab.Round(given, 6), lab.Round(lab.FalsePositives(given, k), 6))
		}
	}
}

// xor and givenOld are z/n of deltas with that share of keys replaced.
func xor(c float64) func(mn, k float64) float64 {
	return func(mn, k float64) float64 { return lab.DeltaBits(mn, k, c) }
}

func givenOld(c float64) func(mn, k float64) float64 {
	return func(mn, k float64) float64 { return lab.GivenBits(mn, k, c) }
}

// mostExponent returns the largest exponent for p in [0.001, 0.999], and that p.
func mostExponent(bits func(mn, k float64) float64) (most, at float64) {
	for i := 1; i < 1000; i++ {
		p := float64(i) / 1000
		if e := exponent(-math.Log(p), bits); e > most {
			most, at = e, p
		}
	}
	return most, at
}

// conjectureReach is the largest c at which no p is better than the limit. No p is better at c
// = 1/2, some are at c = 1, and their advantage grows with c.
func conjectureReach() float64 {
	low, high := 0.5, 1.0
	for range 40 {
		c := (low + high) / 2
		if most, _ := mostExponent(xor(c)); c*most > 0.5 {
			high = c
		} else {
			low = c
		}
	}
	return low
}

// poissonEntropy is the entropy in bits of one counter at that load, kn/m.
func poissonEntropy(load float64) float64 {
	sum := 0.0
	for i := 0; i < 15+int(20*load); i++ {
		fact, _ := math.Lgamma(float64(i + 1))
		if log := float64(i)*math.Log(load) - load - fact; log > -700 {
			sum -= math.Exp(log) * log / math.Ln2
		}
	}
	return sum
}

// countingSizes is section V: counting filters as messages, at one rate of false
// positives and over the number of hashes.
func countingSizes(job *lab.Job) error {
	const n, f = 100_000, 1e-3
	table := job.Table(fmt.Sprintf("Section V: counting filters as messages, f = %g, n = %d", f, n),
		lab.Column{Name: "hashes", Head: "k"},
		lab.Column{Name: "counters", Head: "counters a key, m/n", Format: "%.2f"},
		lab.Column{Name: "plain", Head: "bits a key at four a counter", Format: "%.1f"},
		lab.Column{Name: "entropy", Head: "m·H a key", Format: "%.4f"},
		lab.Column{Name: "coded", Head: "coded by package arith", Format: "%.4f", Loose: lab.Exact},
		lab.Column{Name: "over", Head: "coded over m·H", Format: "%.5f", Loose: lab.Exact},
		lab.Column{Name: "bits", Head: "of the filter alone", Format: "%.4f"},
		lab.Column{Name: "counts", Head: "of the counts", Format: "%.4f"})
	for _, k := range []int{1, 2, 3, 4, 6, 8, 10} {
		mn := lab.ArrayAt(f, float64(k))
		counts := mn * poissonEntropy(float64(k)/mn)
		bits := lab.SentBits(mn, float64(k))
		geometry := digest.Geometry{Bits: uint64(math.Round(mn * n)), Hashes: k}
		coded := 8 * float64(countedBytes(geometry, lab.RandomKeys(job.Source(11, uint64(k)), n))) / n
		table.Row(k, lab.Round(mn, 6), lab.Round(4*mn, 6), lab.Round(counts, 7), lab.Round(coded, 7), lab.Round(coded/counts, 7), lab.Round(bits, 7), lab.Round(counts-bits, 6))
	}
	table.Note("Coded are sets within sets: the positions with a key, which of these have two, which of those three, " +
		"and so on. H is the entropy of a Poisson number of mean kn/m. As with filters, the best k in memory (k = " +
		"10) is the worst on the wire, and one hash is the best.")
	return nil
}

// countedBytes is the size of a counting filter as a message: for each number of keys the positions that
// have so many, as ranks among those that have one less.
func countedBytes(g digest.Geometry, keys []digest.Key) (size int) {
	counts := map[uint64]int{}
	var buf []uint64
	for _, k := range keys {
		buf = g.AppendPositions(buf[:0], k)
		for _, p := range buf {
			counts[p]++
		}
	}
	held := slices.Sorted(maps.Keys(counts))
	ranks := held // of the positions with so many keys, among those with one less
	for m := g.Bits; len(ranks) > 0; m = uint64(len(held)) {
		size += len(arith.AppendSet(nil, arith.Choose(m, uint64(len(ranks))), m, ranks))
		if m != g.Bits {
			held = pick(held, ranks)
		}
		ranks = nil
		for i, p := range held {
			if counts[p]--; counts[p] > 0 {
				ranks = append(ranks, uint64(i))
			}
		}
	}
	return size
}

func pick(from, ranks []uint64) (picked []uint64) {
	for _, i := range ranks {
		picked = append(picked, from[i])
	}
	return picked
}
