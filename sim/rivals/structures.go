package rivals

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

const (
	structureKeys = 100_000
	rivalBits     = 13        // of a fingerprint, unless --f is given: f = 2^-13
	rivalProbes   = 1_000_000 // absent keys, some 120 of which are false positives
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

func leastMemoryName(bits int) string {
	return fmt.Sprintf("Bloom filter of least memory, %d hashes", bits)
}

func rateOf(bits int) float64 { return math.Exp2(-float64(bits)) }

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

// digestPair returns a filter of the keys, the positions that flip if they become the next
// keys, and how many bits it takes to send this change.
func digestPair(bits, hashes int, keys, next []uint64) (before *digest.Filter, flips []uint64, update int, err error) {
	// Rounded up to a whole number of positions. One hash has m = n/f.
	mn := lab.ArrayAt(rateOf(bits), float64(hashes))
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
