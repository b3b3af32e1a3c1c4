package papers

import (
	"fmt"
	"math"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
	"github.com/summarycache/summarycache/sim/lab"
)

// figuresExperiment prints the points of the documents' figures, and of two of our own, as tables.
var figuresExperiment = lab.Experiment{
	Name: "figures",
	Summary: "the documents' figures as tables: false positives by hashes and by bits; what a set and a delta take " +
		"on the wire",
	Seconds: 5,
	Run: func(job *lab.Job) error {
		hashesFigure(job, 1, 8)
		hashesFigure(job, 2, 16)
		for _, figure := range []func(*lab.Job) error{ratioFigure, sizesFigure, deltasFigure} {
			if err := figure(job); err != nil {
				return err
			}
		}
		return nil
	},
}

// hashesFigure is Mitzenmacher's Figure 1 (z/n = 8) or 2 (z/n = 16): f by k, for a filter that is sent
// uncompressed, and for one whose larger array compresses to as many bits.
func hashesFigure(job *lab.Job, number int, z float64) {
	table := job.Table(fmt.Sprintf("Mitzenmacher, Figure %d: f by hash functions, %g bits sent per key", number, z),
		lab.Column{Name: "hashes", Head: "k", Format: "%.5g"},
		lab.Column{Name: "standard", Head: "standard, f", Format: "%.4g"},
		lab.Column{Name: "compressed", Head: "compressed, f", Format: "%.4g"},
		lab.Column{Name: "bits_per_key", Head: "its m/n", Format: "%.5g"})
	table.Chart = &lab.Chart{File: fmt.Sprintf("mitzenmacher-%d", number), X: "hash functions k",
		Y:     "false positives f",
		Lines: []string{"standard", "compressed"}}
	table.Detail = func([]any) bool { return true } // the picture says it
	row := func(k float64) {
		mn := arrayFor(z, k)
		table.Row(lab.Round(k, 6), lab.Round(lab.FalsePositives(z, k), 6), lab.Round(lab.FalsePositives(mn, k), 6), lab.Round(mn, 6))
	}
	best := lab.BestHashes(z)
	for k := 1.0; k <= 1.25*z; k++ {
		if row(k); k < best && best < k+1 {
			row(best)
		}
	}
	table.Note("At k = %.5g the standard filter is at its best, and the compressed one is the same filter, at "+
		"its worst.", best)
}

// arrayFor solves m·H(p) = z for m/n >= z/n, at k hashes.
func arrayFor(z, k float64) float64 { return max(z, largestArray(z, k, lab.SentBits)) }

// largestArray is the m/n at which k hashes take z/n bits, which grow with m.
func largestArray(z, k float64, bits func(mn, k float64) float64) float64 {
	low, high := 1e-3, 1.0
	for bits(high, k) < z && high < 1e300 {
		high *= 2
	}
	for range 200 {
		if mid := (low + high) / 2; bits(mid, k) < z {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// ratioFigure is Figure 4 of Summary Cache: f by m/n, for four hash functions and for the best number of
// them, beside the values that its table prints.
func ratioFigure(job *lab.Job) error {
	cells, err := parseSummaryCache(summaryCacheText)
	if err != nil {
		return err
	}
	four, least := map[float64]any{}, map[float64]float64{}
	for _, c := range cells {
		f, _ := c.Value.Float64()
		switch {
		case c.K == 0:
			continue
		case c.K == 4:
			four[c.MN] = f
		}
		if best, seen := least[c.MN]; !seen || f < best {
			least[c.MN] = f
		}
	}
	table := job.Table("Summary Cache, Figure 4: f by bits per key",
		lab.Column{Name: "bits_per_key", Head: "m/n"},
		lab.Column{Name: "four", Head: "k = 4, f", Format: "%.3g"},
		lab.Column{Name: "four_printed", Head: "k = 4, printed", Format: "%.3g"},
		lab.Column{Name: "best", Head: "best k, continuous, f", Format: "%.3g"},
		lab.Column{Name: "best_printed", Head: "best k, printed", Format: "%.3g"})
	table.Chart = &lab.Chart{File: "summary-cache-4", X: "bits per key m/n", Y: "false positives f",
		Lines: []string{"four", "best"}, Marks: []string{"four_printed", "best_printed"}}
	table.Detail = func([]any) bool { return true } // the picture says it
	for mn := 2.0; mn <= 32; mn++ {
		table.Row(mn, lab.Round(lab.FalsePositives(mn, 4), 5), four[mn], lab.Round(math.Pow(0.5, lab.BestHashes(mn)), 5), least[mn])
	}
	return nil
}

// riceBits is the size per key of a one-hash filter that is sent as gaps in the best Rice code:
// low bits plainly, the rest in unary.
func riceBits(f float64) float64 {
	least := math.Inf(1)
	onesPerKey := lab.ArrayAt(f, 1) * f
	for low := 0.0; low < 60; low++ {
		// The mean quotient and the bit that ends it, of gaps that are geometric.
		unary := -1 / math.Expm1(math.Exp2(low)*math.Log1p(-f))
		least = min(least, onesPerKey*(low+unary))
	}
	return least
}

// cuckooBits is the size of a cuckoo filter: buckets of four, 95 % full, of which a lookup
// compares eight fingerprints.
func cuckooBits(f float64) float64 { return (math.Log2(1/f) + 3) / 0.95 }

// sizesFigure compares representations of a set with a false-positive rate, and has the sizes that the
// packages reach with real keys.
func sizesFigure(job *lab.Job) error {
	rates := []float64{0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003, 0.00001}
	coded := make([]float64, 2*len(rates)) // with one hash and with three
	err := job.Each(len(coded), "filters coded", func(i int) error {
		k := 1 + i%2*2
		m, err := filterKind{mn: lab.ArrayAt(rates[i/2], float64(k)), k: k}.measure(job.Source(3, uint64(i)), 1, 0)
		coded[i] = lab.Round(m.sent.Value, 6)
		return err
	})
	if err != nil {
		return err
	}
	bits := func(name, head string) lab.Column { return lab.Column{Name: name, Head: head, Format: "%.2f"} }
	table := job.Table("Bits sent per key, by false-positive rate",
		lab.Column{Name: "f", Format: "%g"}, bits("bound", "log2 1/f"), bits("bloom", "Bloom filter, uncompressed"),
		bits("one", "one hash, compressed (ours)"), bits("one_coded", "one hash, coded by package arith"),
		bits("three", "three hashes, compressed"), bits("three_coded", "three, coded by package arith"),
		bits("cuckoo", "cuckoo filter, 95 % full"), bits("rice", "one hash, gaps in Rice code"))
	table.Chart = &lab.Chart{File: "sizes", X: "false positives f", Y: "bits sent per key",
		Lines: []string{"bound", "bloom", "one", "three", "cuckoo", "rice"},
		Marks: []string{"one_coded", "three_coded"}}
	table.Detail = func([]any) bool { return true } // the picture says it
	for i, f := range rates {
		table.Row(f, lab.Round(math.Log2(1/f), 6), lab.Round(lab.BloomBits(f), 6), lab.Round(lab.SentBits(lab.ArrayAt(f, 1), 1), 6), coded[2*i],
			lab.Round(lab.SentBits(lab.ArrayAt(f, 3), 3), 6), coded[2*i+1], lab.Round(cuckooBits(f), 6), lab.Round(riceBits(f), 6))
	}
	table.Note("Coded: one filter of %d keys. Squid's digests take 5 bits a key at f = %.3g.", measuredKeys,
		lab.FalsePositives(5, 4))
	return nil
}

// deltaBound is about the least size of a delta per replaced key: it must say which of the old
// keys left, and it adds a set of new keys that has a rate of c·f.
func deltaBound(f, c float64) float64 {
	return math.Log2(1/(c*f)) + bloom.Entropy(c)/c
}

// deltasFigure compares the cost of updates per replaced key, at one false-positive rate.
func deltasFigure(job *lab.Job) error {
	const f = 0.001
	shares := []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3}
	coded := make([]float64, len(shares))
	err := job.Each(len(shares), "deltas coded", func(i int) (err error) {
		coded[i], err = deltaSize(job, i, f, shares[i])
		return err
	})
	if err != nil {
		return err
	}
	bits := func(name, head string) lab.Column { return lab.Column{Name: name, Head: head, Format: "%.2f"} }
	table := job.Table("Bits sent per replaced key, by the share c of the keys replaced, f = 0.001",
		lab.Column{Name: "c", Format: "%g"}, bits("bound", "about the bound"),
		bits("given", "one hash, given the old set (ours)"),
		bits("coded", "coded by package digest"), bits("xor", "one hash, XOR coded"),
		bits("two", "two hashes, m/n = 62, XOR coded"),
		bits("least", "Bloom filter of least memory, XOR coded"), bits("records", "the same, 32-bit records"),
		bits("anew", "one hash, the whole filter"))
	table.Chart = &lab.Chart{File: "deltas", X: "share c of the keys replaced", Y: "bits sent per replaced key",
		Lines: []string{"bound", "given", "xor", "two", "least"}, Marks: []string{"coded"}}
	best := float64(lab.BestInteger(lab.ArrayAt(f, 10)))
	for i, c := range shares {
		per := func(k float64, bits func(mn, k, c float64) float64) float64 {
			return lab.Round(bits(lab.ArrayAt(f, k), k, c)/c, 6)
		}
		mn := lab.ArrayAt(f, best)
		table.Row(c, lab.Round(deltaBound(f, c), 6), per(1, lab.GivenBits), lab.Round(coded[i], 6), per(1, lab.DeltaBits), per(2, lab.DeltaBits),
			per(best, lab.DeltaBits), lab.Round(-64*mn*lab.Zeros(mn, best)*math.Expm1(-c*best/mn)/c, 6), lab.Round(lab.SentBits(lab.ArrayAt(f, 1), 1)/c, 6))
	}
	table.Note("Coded: a million keys, without header and checksum. The paper calls two hashes at 62 bits a key " +
		"practical; records are Summary Cache's, one a flipped bit.")
	return nil
}

// deltaSize replaces a share c of a million keys of a one-hash digest, and returns the
// bits per replaced key of the delta, without header and checksum.
func deltaSize(job *lab.Job, i int, f, c float64) (float64, error) {
	const n = 1_000_000
	rng := job.Source(4, uint64(i))
	held, keys, base, err := lab.Filled(digest.Geometry{Bits: uint64(math.Round(lab.ArrayAt(f, 1) * n)), Hashes: 1}, rng, n)
	if err != nil {
		return 0, err
	}
	changed := int(math.Round(c * n))
	lab.ReplaceKeys(held, rng, keys[:changed])
	_, d := held.AdvanceDelta()
	coded, err := d.AppendBare(nil, base)
	return 8 * float64(len(coded)) / float64(changed), err
}
