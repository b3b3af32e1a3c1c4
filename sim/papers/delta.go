package papers

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

var deltaExperiment = lab.Experiment{
	Name:    "delta",
	Summary: "bits per replaced key of deltas, measured on real filters, against the entropy and against others",
	Seconds: 13,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n, f, c, shapes := lab.KeysFlag(flags, 1_000_000), lab.RatesFlag(flags), lab.SharesFlag(flags, 0.05, 0.01, 0.001), lab.ShapesFlag(flags)
		return func(ctx context.Context, job *lab.Job) error {
			return lab.ForEach(*n, func(n int) error { return deltasOf(ctx, job, n, deltaKinds(*f, *shapes), *c) })
		}
	},
}

const (
	paperMaxBits = 64 // m/n that the paper still calls practical
	recordBits   = 32 // of Summary Cache's update records, one a flipped bit
	bucketBits   = 96 // of a cuckoo filter's bucket image; a replaced key touches two
)

// A tuning is a way to choose m and k for a false-positive rate and a share of
// replaced keys.
type tuning struct {
	name   string
	choose func(f, c float64) (mn float64, k int)
}

var tunings = []tuning{
	{"standard", func(f, _ float64) (float64, int) {
		return cheapest(f, math.Inf(1), func(mn float64, _ int) float64 { return mn })
	}},
	{"paper", func(f, c float64) (float64, int) {
		return cheapest(f, paperMaxBits, func(mn float64, k int) float64 { return lab.DeltaBits(mn, float64(k), c) })
	}},
	{"ours", func(f, _ float64) (float64, int) { return lab.ArrayAt(f, 1), 1 }},
}

// cheapest returns the m/n, at most limit, and k of least cost that have rate f.
func cheapest(f, limit float64, cost func(mn float64, k int) float64) (mn float64, k int) {
	least := math.Inf(1)
	for hashes := 1; hashes <= digest.MaxHashes; hashes++ {
		if size := lab.ArrayAt(f, float64(hashes)); size <= limit {
			if bits := cost(size, hashes); bits < least {
				least, mn, k = bits, size, hashes
			}
		}
	}
	return mn, k
}

// roughBound is log2(1/f) + 2·log2(1/c) + log2(e): a new key takes one of 1/f places a key, and
// an old key is one of 1/c keys.
func roughBound(f, c float64) float64 {
	return math.Log2(1/f) + 2*math.Log2(1/c) + math.Log2E
}

// A deltaKind is a way to choose a filter for a rate.
type deltaKind struct {
	f float64
	tuning
}

func deltaKinds(rates []float64, shapes []lab.Shape) (kinds []deltaKind) {
	if len(shapes) == 0 {
		rates = lab.Or(rates, []float64{0.02, 1e-2, 1e-3, 1e-4})
	}
	for _, f := range rates {
		for _, t := range tunings {
			kinds = append(kinds, deltaKind{f, t})
		}
	}
	for _, g := range shapes {
		f := lab.Round(lab.FalsePositives(g.MN, float64(g.K)), 4)
		kinds = append(kinds, deltaKind{f, tuning{"one's own", func(_, _ float64) (float64, int) { return g.MN, g.K }}})
	}
	return kinds
}

func deltasOf(ctx context.Context, job *lab.Job, n int, kinds []deltaKind, shares []float64) error {
	table := job.Table(fmt.Sprintf("bits per replaced key, n = %d, whole messages", n),
		lab.Column{Name: "f", Format: "%g"},
		lab.Column{Name: "c", Format: "%g"},
		lab.Column{Name: "filter"},
		lab.Column{Name: "bits_per_key", Head: "m/n", Format: "%.1f"},
		lab.Column{Name: "hashes", Head: "k"},
		lab.Column{Name: "xor", Head: "XOR", Format: "%.2f", Loose: 1e-9},
		lab.Column{Name: "context", Head: "given the old", Format: "%.2f", Loose: 1e-9},
		lab.Column{Name: "entropy", Format: "%.2f"},
		lab.Column{Name: "ratio", Format: "%.4f", Loose: 1e-9},
		lab.Column{Name: "bound", Format: "%.2f"},
		lab.Column{Name: "records", Head: "32-bit records", Format: "%.1f", Loose: 1e-9},
		lab.Column{Name: "buckets", Head: "96-bit buckets", Format: "%.0f"})
	for at, kind := range kinds {
		for i, c := range shares {
			f, s := kind.f, kind.tuning
			job.Progress(at*len(shares)+i, len(kinds)*len(shares), "f = %g, %s, c = %g", f, s.name, c)
			mn, k := s.choose(f, c)
			mn = math.Ceil(mn*float64(n)) / float64(n)
			limit := lab.GivenBits(mn, float64(k), c) / c
			bound := lab.Round(roughBound(f, c), 6)
			if job.Short && (s.name != "ours" || f != 1e-3 || c != 0.01) {
				table.Row(f, c, s.name, lab.Round(mn, 4), k, nil, nil, lab.Round(limit, 6), nil, bound, nil, 2.0*bucketBits)
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			m, err := measureDelta(job, n, mn, k, c, uint64(i))
			if err != nil {
				return err
			}
			table.Row(f, c, s.name, lab.Round(mn, 4), k, m.xor, m.context, lab.Round(limit, 6),
				lab.Round(m.context/limit, 6), bound, m.flips*recordBits, 2.0*bucketBits)
		}
	}
	table.Note("XOR: the exclusive-or, coded; given the old: with the old filter as context, as digests are sent")
	table.Note("entropy: of the new filter given the old (formulas); ratio: the size sent over the entropy, headers and checksums included")
	table.Note("bound: log2(1/f) + 2 log2(1/c) + 1.44; records: 32 bits a flip (Summary Cache); buckets: two images of 96 bits")
	return nil
}

// deltaSizes are bits per replaced key, except flips, which are positions per replaced key.
type deltaSizes struct{ xor, context, flips float64 }

// measureDelta replaces a share c of the n keys of a real filter, and returns the sizes of the
// messages.
func measureDelta(job *lab.Job, n int, mn float64, k int, c float64, stream uint64) (sizes deltaSizes, err error) {
	g := digest.Geometry{Bits: uint64(math.Ceil(mn * float64(n))), Hashes: k}
	rng := job.Rand(g.Bits + stream)
	held, keys, base, err := lab.Filled(g, rng, n)
	if err != nil {
		return sizes, err
	}
	replaced := int(math.Round(c * float64(n)))
	if replaced == 0 {
		return sizes, lab.Usagef("a share of %g of %d keys is no key", c, n)
	}
	lab.ReplaceKeys(held, rng, keys[:replaced])
	_, d := held.AdvanceDelta()
	given, err := d.AppendTo(nil, base)
	if err != nil {
		return sizes, err
	}
	bare, err := d.AppendBare(nil, base)
	flips, m := d.AppendPositions(nil), g.Bits
	plain := arith.AppendSet(nil, arith.Choose(m, uint64(len(flips))), m, flips) // in a message of its own
	per := 1 / float64(replaced)
	return deltaSizes{8 * per * float64(len(given)-len(bare)+len(plain)), 8 * per * float64(len(given)), per * float64(d.Len())}, err
}
