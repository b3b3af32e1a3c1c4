package digest

import (
	"errors"
	"fmt"
	"math"
)

// Bounds on every [Geometry].
const (
	maxBits   = 1 << 44 // m
	maxHashes = 32      // k
)

// A Geometry says how keys become positions. All filters of one epoch share one, and
// there is a delta between two filters only if their geometries are equal. The zero
// Geometry is not valid: use [GeometryFor] or [Plan], or set the fields yourself.
type Geometry struct {
	Bits   uint64 // m, size of the position space: 1 to 2^44
	Hashes int    // k, positions per key: 1 to 32
	// Seed is the one that keys are hashed under, as given to [KeyOf]; zero
	// means none. It is a secret: encodings carry a one-way tag of it, and
	// decoding restores it from [Limits.Seed].
	Seed    uint64
	Profile Profile // what the keys are of
	// tag is the tag of an unknown seed: that of a filter decoded without Limits.Seed.
	tag uint32
}

// GeometryFor returns the geometry in which so many keys take the fewest bytes on the wire
// at the given rate of false positives, above 0 and below 1. It has one hash and
// keys/falsePositiveRate bits, which stay a compact sorted set in memory (Mitzenmacher,
// section II-B, where the number of hashes goes to its lower limit). If that takes more than
// 2^44, from a billion keys at a rate of 5·10⁻⁵ on, it has as few more hashes as it needs. The
// bits are rounded up to a multiple of 1024. The geometry has no seed yet. The error wraps
// [ErrGeometry] if there are no keys or the rate is out of range, and [ErrTooLarge] if no number of
// hashes is enough.
//
// To plan for a budget of traffic or memory, use [Plan].
func GeometryFor(keys uint64, falsePositiveRate float64) (Geometry, error) {
	fail := func(err error, why string) (Geometry, error) {
		return Geometry{}, fmt.Errorf("digest: geometry for %d keys at %v false positives: %w: %s", keys, falsePositiveRate, err, why)
	}
	if keys == 0 || !(falsePositiveRate > 0 && falsePositiveRate < 1) {
		return fail(ErrGeometry, "want at least 1 key, and a rate above 0 and below 1")
	}
	for k := 1; k <= maxHashes; k++ {
		if m, ok := fewestBits(keys, k, falsePositiveRate); ok {
			const multiple = 1024
			return Geometry{Bits: (m + multiple - 1) / multiple * multiple, Hashes: k}, nil
		}
	}
	return fail(ErrTooLarge, fmt.Sprintf("more than %d bits", uint64(maxBits)))
}

// validate reports everything that is wrong with g, wrapping [ErrGeometry].
func (g Geometry) validate() error {
	var errs []error
	if g.Bits < 1 || g.Bits > maxBits {
		errs = append(errs, fmt.Errorf("digest: bits %d: %w: want 1 to %d", g.Bits, ErrGeometry, uint64(maxBits)))
	}
	if g.Profile == AnyProfile {
		errs = append(errs, fmt.Errorf("digest: profile %d: %w: it is for Limits", g.Profile, ErrGeometry))
	}
	if g.Hashes < 1 || g.Hashes > maxHashes {
		errs = append(errs, fmt.Errorf("digest: hashes %d: %w: want 1 to %d", g.Hashes, ErrGeometry, maxHashes))
	}
	return errors.Join(errs...)
}

// seedTag returns what encodings carry instead of the seed: 0 if there is none.
func (g Geometry) seedTag() uint32 {
	if g.Seed != 0 {
		return seedTag(g.Seed)
	}
	return g.tag
}

// predict returns the expected share of positions that n keys set, and the expected
// false-positive rate. These are 1-(1-1/m)^(kn) and its k-th power (Mitzenmacher, section II-A).
// With several hashes the rate also includes
// keys that two hashes cannot distinguish, of the order of n/m²: next to nothing in a filter of
// thousands of keys, and a third of the rate for 100 keys, 17 bits a key and 8 hashes.
func (g Geometry) predict(n uint64) (fill, falsePositives float64) {
	m, k := float64(g.Bits), float64(g.Hashes)
	if m == 1 {
		if n == 0 {
			return 0, 0
		}
		return 1, 1
	}
	fill = -math.Expm1(k * float64(n) * math.Log1p(-1/m))
	falsePositives = math.Pow(fill, k)
	if g.Hashes > 1 {
		falsePositives = min(1, falsePositives+alike(m, k, float64(n), fill))
	}
	return fill, falsePositives
}

// alike returns what double hashing adds to the rate of false positives. A key has the same
// positions as a held key if both of its hashes are nearly those of the held key. Its sequence
// may also begin s steps before or after that of the held key, or run backwards. Then s
// positions differ, and all of these are set with probability p^s, for a fill of p. In each
// case two values out of m must coincide, which gives n/m². The factor of 3/2 is measured, and
// right to within a fifth from 4 hashes on.
func alike(m, k, n, p float64) float64 {
	const measured = 1.5
	sum := k * k * (1 - p) // for p close to 1
	if p < 0.999 {
		all := math.Pow(p, k)
		sum = 1 + 2*(p-all)/(1-p) - (2*k-1)*all // of p^|s| - p^k over all |s| < k
	}
	return measured * n / (m * m) * sum
}

func (g Geometry) String() string {
	return fmt.Sprintf("m=%d k=%d", g.Bits, g.Hashes)
}

// normal gives g its canonical form, in which equal geometries are ==.
func (g Geometry) normal() Geometry {
	if g.Seed != 0 {
		g.tag = 0
	}
	return g
}

// matches reports whether positions mean the same in g and in o.
func (g Geometry) matches(o Geometry) bool {
	if g.Bits != o.Bits || g.Hashes != o.Hashes || g.Profile != o.Profile {
		return false
	}
	return g.Seed == o.Seed && g.tag == o.tag || g.seedTag() == o.seedTag()
}
