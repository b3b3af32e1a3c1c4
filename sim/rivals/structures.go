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
	message  int // an image of the memory
	update   int // of an image, for a receiver that has the one before the replacements; 0 if the image must be sent again
	set      *fingerprints
}

// The fingerprints of a filter are the other form of its messages: they are places in a universe,
// of which a receiver makes any table. See PROOFS.md.
type fingerprints struct {
	universe uint64
	was, is  []uint64 // ascending; before and after the replacements
}

func (s *fingerprints) message() int { return setBits(s.universe, s.was) }

// update is the size of the places that came, among those that were free, and of those that left,
// among those that were taken.
func (s *fingerprints) update() int {
	var came, left []uint64
	was, is := s.was, s.is
	for len(was)+len(is) > 0 {
		switch taken := uint64(len(s.was) - len(was)); {
		case len(was) == 0 || len(is) > 0 && is[0] < was[0]:
			came, is = append(came, is[0]-taken), is[1:]
		case len(is) == 0 || was[0] < is[0]:
			left, was = append(left, taken), was[1:]
		default:
			was, is = was[1:], is[1:]
		}
	}
	n := uint64(len(s.was))
	return setBits(s.universe-n, came) + setBits(n, left)
}

// fingerprintSets returns the fingerprints of two sets of keys.
func fingerprintSets(universe uint64, place func(key uint64) uint64, keys, next []uint64) *fingerprints {
	of := func(keys []uint64) (all []uint64) {
		for _, k := range keys {
			all = append(all, place(k))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	return &fingerprints{universe, of(keys), of(next)}
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

// digestPair returns a filter of the keys, and how many bits it takes to send the change to the next
// ones.
func digestPair(bits, hashes int, keys, next []uint64) (before *digest.Filter, update int, err error) {
	// Rounded up to a whole number of positions. One hash has m = n/f.
	mn := lab.ArrayAt(rateOf(bits), float64(hashes))
	held, err := digest.NewCountingFilter(digest.Geometry{Bits: uint64(math.Ceil(mn * float64(len(keys)))), Hashes: hashes}, 1)
	if err != nil {
		return nil, 0, err
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
	return before, 8 * len(coded), err
}

func oneHashRival(bits int, keys, next []uint64) (rival, error) {
	r, m, err := ourRival(bits, 1, keys, next)
	r.set = fingerprintSets(m, func(k uint64) uint64 { return lab.High(k, m) }, keys, next)
	return r, err
}

func leastMemoryRival(bits int, keys, next []uint64) (rival, error) {
	r, _, err := ourRival(bits, bits, keys, next)
	return r, err
}

func ourRival(bits, hashes int, keys, next []uint64) (r rival, m uint64, err error) {
	f, update, err := digestPair(bits, hashes, keys, next)
	if err != nil {
		return rival{}, 0, err
	}
	contains := func(k uint64) bool { return f.MayContain(digest.Key(k)) }
	return rival{contains: contains, memory: 8 * f.MemoryBytes(), message: 8 * len(f.AppendTo(nil)), update: update}, f.Geometry().Bits, nil
}

// setBits is the size of a coded set, in bits.
func setBits(universe uint64, set []uint64) int {
	return 8 * len(arith.AppendSet(nil, arith.Choose(universe, uint64(len(set))), universe, set))
}
