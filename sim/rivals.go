package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
)

var _ = experiments.add(Experiment{
	Name:    "rivals",
	Summary: "other structures at the same rate of false positives: bits in memory, as a message and as an update; set reconciliation",
	Seconds: 2,
	Flags: func(flags *flag.FlagSet) runner {
		n, f, c := keysFlag(flags, structureKeys), ratesFlag(flags, rateOf(rivalBits)), sharesFlag(flags, rivalShare)
		return func(ctx context.Context, job *Job) error { return runRivals(ctx, job, *n, *f, *c) }
	},
})

const (
	structureKeys = 100_000
	rivalBits     = 13        // of a fingerprint, unless --f is given: f = 2^-13
	rivalProbes   = 1_000_000 // absent keys, some 120 of which are false positives
	rivalValues   = 8         // bits of a value with each key
	rivalShare    = 0.01      // share of the keys that is replaced between two updates

	fewestBits, mostBits = 4, 24
)

// A rival is a structure with a set of keys. Sizes are in bits for the whole set.
type rival struct {
	contains func(key uint64) bool
	memory   int
	message  int
	update   int // for a receiver that has the set before the replacements; 0 if the message must be sent again
}

// A builder makes a structure of keys with f = 2^-bits, and computes the size of an update to
// the set next.
type builder func(bits int, keys, next []uint64) (rival, error)

var rivals = []struct {
	name  string
	build builder
}{
	{"one hash, m = n/f, compressed (ours)", oneHashRival},
	{leastMemoryName(rivalBits), leastMemoryRival},
	{"one hash, gaps in Rice code", riceRival},
	{"xor filter", fixedRival(xorShape)},
	{"binary fuse filter, 3 places", fixedRival(fuse3Shape)},
	{"binary fuse filter, 4 places", fixedRival(fuse4Shape)},
	{"ribbon filter, 64 wide", ribbonRival},
	{"perfect hash and fingerprints", perfectRival},
	{"cuckoo filter, 4 slots, 95 % full", cuckooRival},
	{"quotient filter, 95 % full", quotientRival},
}

func leastMemoryName(bits int) string {
	return fmt.Sprintf("Bloom filter of least memory, %d hashes", bits)
}

func rateOf(bits int) float64 { return math.Exp2(-float64(bits)) }

func runRivals(ctx context.Context, job *Job, keys []int, rates, shares []float64) error {
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
	if err := values(job); err != nil {
		return err
	}
	return reconciliation(ctx, job)
}

// rivalSets returns keys, and the same keys with some replaced.
func rivalSets(rng *rand.Rand, n, replaced int) (keys, next []uint64) {
	for range n {
		keys = append(keys, rng.Uint64())
	}
	next = slices.Clone(keys)
	for i := range replaced {
		next[i*(n/replaced)] = rng.Uint64()
	}
	return keys, next
}

func structures(ctx context.Context, job *Job, n, bits, replaced int) error {
	table := job.Table(fmt.Sprintf("structures at f = 2^-%d, n = %d: bits a key and, for the update, bits for each of %d replaced keys", bits, n, replaced),
		Column{Name: "structure"},
		Column{Name: "memory", Format: "%.2f", Loose: exact},
		Column{Name: "message", Format: "%.2f", Loose: exact},
		Column{Name: "over", Head: "message over log2 1/f", Format: "%.3f", Loose: exact},
		Column{Name: "update", Format: "%.1f", Loose: exact},
		Column{Name: "f", Head: fmt.Sprintf("f, measured over 2^-%d", bits), Format: "%.2f", Loose: exact},
		Column{Name: "build_ns", Head: "build ns/key", Format: "%.0f", Loose: AnyValue},
		Column{Name: "hit_ns", Head: "hit ns", Format: "%.0f", Loose: AnyValue},
		Column{Name: "miss_ns", Head: "miss ns", Format: "%.0f", Loose: AnyValue})
	table.Row("bound", nil, float64(bits), 1.0, nil, nil, nil, nil, nil)
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
		buildTime := nanoseconds(n, func() { built, err = r.build(bits, keys, nil) })
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if built, err = r.build(bits, keys, next); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		hit := nanoseconds(n, func() {
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
		miss := nanoseconds(rivalProbes, func() {
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
		table.Row(r.name, float64(built.memory)*perKey, float64(built.message)*perKey, float64(built.message)*perKey/float64(bits),
			float64(update)/float64(replaced), counted(float64(found), rivalProbes, rateOf(bits)), buildTime, hit, miss)
	}
	believed := rivalProbes * rateOf(bits)
	table.Note("Keys are hashed beforehand. f is counted on %d keys. About %g of these are false positives of each structure, so the standard deviation is %.0f %%. Times depend on the machine; rivals are simple implementations.", rivalProbes, figures(believed, 2), 100/math.Sqrt(believed))
	table.Note("Updates: for ours and the Bloom filter, package digest's delta; for Rice code, coded flips; for a cuckoo filter, the buckets that changed, the slots of the fingerprints that left, and those that came; for a quotient filter, the slots that changed, coded, and their contents. All others are sent again.")
	return nil
}

// digestPair returns a filter of the keys, the positions that flip if they become the next
// keys, and how many bits it takes to send this change.
func digestPair(bits, hashes int, keys, next []uint64) (before *digest.Filter, flips []uint64, update int, err error) {
	// Rounded up to a whole number of positions. One hash has m = n/f.
	mn := arrayAt(rateOf(bits), float64(hashes))
	held, err := digest.NewCountingFilter(digest.Geometry{Bits: uint64(math.Ceil(mn * float64(len(keys)))), Hashes: hashes}, 1)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, k := range keys {
		held.Add(digest.Key(k))
	}
	before = held.Advance()
	for i := range next {
		if next[i] != keys[i] {
			held.Remove(digest.Key(keys[i]))
			held.Add(digest.Key(next[i]))
		}
	}
	_, d := held.AdvanceDelta()
	coded, err := d.AppendTo(nil, before)
	return before, d.AppendPositions(nil), 8 * len(coded), err
}

func oneHashRival(bits int, keys, next []uint64) (rival, error) { return ourRival(bits, 1, keys, next) }

func leastMemoryRival(bits int, keys, next []uint64) (rival, error) {
	return ourRival(bits, bits, keys, next)
}

func ourRival(bits, hashes int, keys, next []uint64) (rival, error) {
	f, _, update, err := digestPair(bits, hashes, keys, next)
	if err != nil {
		return rival{}, err
	}
	return rival{func(k uint64) bool { return f.MayContain(digest.Key(k)) }, 8 * f.MemoryBytes(), 8 * len(f.AppendTo(nil)), update}, nil
}

// riceRival has the same positions as ours. In memory it is the code, which a lookup would have
// to decode; lookups here use ours.
func riceRival(bits int, keys, next []uint64) (rival, error) {
	f, flips, _, err := digestPair(bits, 1, keys, next)
	if err != nil {
		return rival{}, err
	}
	size := riceSize(slices.Collect(f.Positions()))
	return rival{func(k uint64) bool { return f.MayContain(digest.Key(k)) }, size, size, riceSize(flips)}, nil
}

// riceSize is the size in bits of the gaps between positions in the best Rice code.
func riceSize(positions []uint64) int {
	least := math.MaxInt
	for low := range 40 {
		size, last := 0, uint64(0)
		for _, p := range positions {
			size += low + 1 + int((p-last)>>low)
			last = p + 1
		}
		least = min(least, size)
	}
	return least
}

// setBits is the size of a coded set, in bits.
func setBits(universe int, set []uint64) int {
	return 8 * len(arith.AppendSet(nil, arith.Choose(uint64(universe), uint64(len(set))), uint64(universe), set))
}
