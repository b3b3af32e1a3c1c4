package rivals

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/summarycache/summarycache/sim/lab"
)

var rivalsExperiment = lab.Experiment{
	Name:    "rivals",
	Summary: "other structures at the same rate of false positives: bits in memory, as a message and as an update; set reconciliation",
	Seconds: 2,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n, f, c := lab.KeysFlag(flags, structureKeys), lab.RatesFlag(flags, rateOf(rivalBits)), lab.SharesFlag(flags, rivalShare)
		return func(ctx context.Context, job *lab.Job) error { return runRivals(ctx, job, *n, *f, *c) }
	},
}

var rivals = []struct {
	name  string
	build builder
}{
	{"one hash, m = n/f, compressed (ours)", oneHashRival},
	{leastMemoryName(rivalBits), leastMemoryRival},
	{"binary fuse filter, 4 places", fixedRival(fuse4Shape)},
	{"ribbon filter, 64 wide", ribbonRival},
	{"bumped ribbon filter (BuRR), 64 wide", bumpedRival},
	{"cuckoo filter, 4 slots, 95 % full", cuckooRival},
	{"quotient filter, 95 % full", quotientRival},
}

func runRivals(ctx context.Context, job *lab.Job, keys []int, rates, shares []float64) error {
	for _, n := range keys {
		for _, f := range rates {
			bits := int(math.Round(-math.Log2(f)))
			if bits < fewestBits || bits > mostBits {
				return fmt.Errorf("--f %g: want 2^-%d to 2^-%d, %.2g to %.2g: fingerprints have whole bits", f, mostBits, fewestBits, rateOf(mostBits), rateOf(fewestBits))
			}
			for _, c := range shares {
				if err := structures(ctx, job, n, bits, max(1, int(c*float64(n)))); err != nil {
					return err
				}
			}
		}
	}
	return reconciliation(ctx, job)
}

func structures(ctx context.Context, job *lab.Job, n, bits, replaced int) error {
	table := job.Table(fmt.Sprintf("structures at f = 2^-%d, n = %d: bits a key and, for the update, bits for each of %d replaced keys", bits, n, replaced),
		lab.Column{Name: "structure"},
		lab.Column{Name: "memory", Format: "%.2f", Loose: lab.Exact},
		lab.Column{Name: "message", Head: "message, an image", Format: "%.2f", Loose: lab.Exact},
		lab.Column{Name: "over", Head: "over log2 1/f", Format: "%.3f", Loose: lab.Exact},
		lab.Column{Name: "set", Head: "message, a set", Format: "%.2f", Loose: lab.Exact},
		lab.Column{Name: "update", Head: "update, an image", Format: "%.1f", Loose: lab.Exact},
		lab.Column{Name: "set_update", Head: "update, a set", Format: "%.2f", Loose: lab.Exact},
		lab.Column{Name: "f", Head: fmt.Sprintf("f, measured over 2^-%d", bits), Format: "%.2f", Loose: lab.Exact},
		lab.Column{Name: "build_ns", Head: "build ns/key", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "hit_ns", Head: "hit ns", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "miss_ns", Head: "miss ns", Format: "%.0f", Loose: lab.AnyValue})
	table.Row("bound of a set that never changes", nil, float64(bits), 1.0, nil, nil, nil, nil, nil, nil, nil)
	keys, next := rivalSets(job.Rand(31), n, replaced)
	for i, r := range rivals {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.name == leastMemoryName(rivalBits) {
			r.name = leastMemoryName(bits)
		}
		job.Progress(i, len(rivals), "%s", r.name)
		var built rival
		var err error
		buildTime := lab.Nanoseconds(n, func() { built, err = r.build(bits, keys, nil) })
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if built, err = r.build(bits, keys, next); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		hit := lab.Nanoseconds(n, func() {
			for _, k := range keys {
				if !built.contains(k) {
					err = fmt.Errorf("%s: an added key is missing", r.name)
				}
			}
		})
		if err != nil {
			return err
		}
		rng, found := job.Rand(32), 0
		miss := lab.Nanoseconds(rivalProbes, func() {
			for range rivalProbes {
				if built.contains(rng.Uint64()) {
					found++
				}
			}
		})
		update := built.update
		if update == 0 {
			update = built.message
		}
		perKey := 1 / float64(n)
		var set, setUpdate any
		if built.set != nil {
			set, setUpdate = float64(built.set.message())*perKey, float64(built.set.update())/float64(replaced)
		}
		table.Row(r.name, float64(built.memory)*perKey, float64(built.message)*perKey, float64(built.message)*perKey/float64(bits), set,
			float64(update)/float64(replaced), setUpdate, lab.Counted(float64(found), rivalProbes, rateOf(bits)), buildTime, hit, miss)
	}
	believed := rivalProbes * rateOf(bits)
	table.Note("Keys are hashed beforehand. f is counted on %d keys. About %g of these are false positives of each structure, so the standard deviation is %.0f %%. Times depend on the machine; rivals are simple implementations.", rivalProbes, lab.Round(believed, 2), 100/math.Sqrt(believed))
	table.Note("An image is the structure's memory, coded; ours and the Bloom filter's are package digest's messages, with their frames. The update of an image is, of a cuckoo filter, the buckets that changed, the slots of the fingerprints that left, and those that came; of a quotient filter, the slots that changed, and their contents. Static filters are sent again.")
	table.Note("As a set: the filter's fingerprints, with the places in its table that they allow, are places in a universe of some n/f. The update is the places that came and left. Both are coded by package arith, without frames. Every filter of fingerprints has this message, and its receiver makes the table (PROOFS.md).")
	return nil
}
