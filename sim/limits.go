package main

import (
	"context"
	"flag"
	"math"
)

var _ = experiments.add(Experiment{
	Name:    "limits",
	Summary: "limits of f for few hashes at a given size on the wire: filters, deltas and counting filters",
	Flags: func(flags *flag.FlagSet) runner {
		c := sharesFlag(flags, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.69, 0.7, 0.8, 1)
		return func(ctx context.Context, job *Job) error {
			filterLimit(job)
			deltaLimit(job, *c)
			return countingSizes(ctx, job)
		}
	},
})

// exponent is log2(1/f) per bit sent for each key, for filters with that load kn/m. The
// paper's β is 2^-exponent. bits returns z/n for an m/n and a k.
func exponent(load float64, bits func(mn, k float64) float64) float64 {
	return -load * math.Log2(-math.Expm1(-load)) / bits(1, load)
}

// filterLimit follows p, the share of zeros, to 1: section II-B.
func filterLimit(job *Job) {
	const z = 8
	table := job.Table("Section II-B: filters of 8 bits a key on the wire, by their share p of zeros",
		Column{Name: "ones", Head: "1-p", Format: "%.4g"},
		Column{Name: "hashes", Head: "k", Format: "%.3g"},
		Column{Name: "bits_per_key", Head: "m/n", Format: "%.4g"},
		Column{Name: "gamma", Head: "γ", Format: "%.5f"},
		Column{Name: "beta", Head: "β", Format: "%.5f"},
		Column{Name: "f", Format: "%.5f"},
		Column{Name: "over", Head: "f over (1/2)^8", Format: "%.3f"})
	one := 1 / arrayFor(z, 1) // the load of the filter with one hash
	for _, ones := range []float64{0.5, 0.4, 0.3, 0.2, 0.1, -math.Expm1(-one), 1e-3, 1e-6, 1e-12, 1e-100, 1e-300} {
		load := -math.Log1p(-ones)
		bits := sentBits(1, load)
		beta := math.Exp2(-exponent(load, sentBits))
		table.Row(figures(ones, 6), figures(load*z/bits, 6), figures(z/bits, 6), figures((1-ones)/math.Log(ones)-ones/load, 7),
			figures(beta, 7), figures(math.Pow(beta, z), 7), figures(math.Pow(2*beta, z), 7))
	}
	table.Note("γ as in the paper, from -1/ln 2 to -1. No filter can have the k below 1 of the last rows.")
}

// deltaLimit checks the conjecture of section IV.
func deltaLimit(job *Job, shares []float64) {
	table := job.Table("Section IV: log2(1/f) for each bit a replaced key, by the share c of the keys replaced",
		Column{Name: "c", Format: "%g"},
		Column{Name: "half", Head: "p = 1/2", Format: "%.4f"},
		Column{Name: "inside", Head: "most, p <= 0.999", Format: "%.4f"},
		Column{Name: "at", Head: "at p", Format: "%.3f"},
		Column{Name: "limit", Head: "p → 1", Format: "%.4f"},
		Column{Name: "holds", Head: "most as p → 1"},
		Column{Name: "given_inside", Head: "given the old, most, p <= 0.999", Format: "%.4f"},
		Column{Name: "given_limit", Head: "given the old, p → 1", Format: "%.4f"})
	for _, c := range shares {
		inside, at := mostExponent(xor(c))
		given, _ := mostExponent(givenOld(c))
		holds := "yes"
		if c*inside > 0.5 {
			holds = "no"
		}
		table.Row(c, figures(c*exponent(math.Ln2, xor(c)), 6), figures(c*inside, 6), at, 0.5, holds, figures(c*given, 6), 1.0)
	}
	table.Note("β → (1/2)^(1/2c) is 0.5 here, z/(cn) bits giving f = (1/2)^(z/2cn). That it is the least β is conjectured for c < 1/2; it holds up to c = %.4f.", conjectureReach())
	table.Note("Given the old: coded with the old filter as context, as package digest does. The share of the bits that says which keys left then tends to zero, so the limit is f = (1/2)^(z/cn).")
}

// xor and givenOld are z/n of deltas with that share of keys replaced.
func xor(c float64) func(mn, k float64) float64 {
	return func(mn, k float64) float64 { return deltaBits(mn, k, c) }
}

func givenOld(c float64) func(mn, k float64) float64 {
	return func(mn, k float64) float64 { return givenBits(mn, k, c) }
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
