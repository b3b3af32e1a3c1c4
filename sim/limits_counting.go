package main

import (
	"context"
	"fmt"
	"math"

	"github.com/summarycache/summarycache/digest"
)

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
func countingSizes(ctx context.Context, job *Job) error {
	const n, f = 100_000, 1e-3
	table := job.Table(fmt.Sprintf("Section V: counting filters as messages, f = %g, n = %d", f, n),
		Column{Name: "hashes", Head: "k"},
		Column{Name: "counters", Head: "counters a key, m/n", Format: "%.2f"},
		Column{Name: "plain", Head: "bits a key at four a counter", Format: "%.1f"},
		Column{Name: "entropy", Head: "m·H a key", Format: "%.4f"},
		Column{Name: "coded", Head: "coded by package digest", Format: "%.4f", Loose: exact},
		Column{Name: "over", Head: "coded over m·H", Format: "%.5f", Loose: exact},
		Column{Name: "bits", Head: "of the filter alone", Format: "%.4f"},
		Column{Name: "counts", Head: "of the counts", Format: "%.4f"})
	for _, k := range []int{1, 2, 3, 4, 6, 8, 10} {
		if err := ctx.Err(); err != nil {
			return err
		}
		mn := arrayAt(f, float64(k))
		counts := mn * poissonEntropy(float64(k)/mn)
		bits := sentBits(mn, float64(k))
		held, err := digest.NewCountingFilter(digest.Geometry{Bits: uint64(math.Round(mn * n)), Hashes: k}, 1)
		if err != nil {
			return err
		}
		rng := job.source(11, uint64(k))
		for range n {
			held.Add(digest.Key(rng.Uint64()))
		}
		coded := 8 * float64(len(held.AppendTo(nil))) / n
		table.Row(k, figures(mn, 6), figures(4*mn, 6), figures(counts, 7), figures(coded, 7), figures(coded/counts, 7), figures(bits, 7), figures(counts-bits, 6))
	}
	table.Note("H is the entropy of a Poisson number of mean kn/m. As with filters, the best k in memory (k = 10) is the worst on the wire, and one hash is the best.")
	return nil
}
