package digest

import (
	"errors"
	"fmt"

	"github.com/summarycache/summarycache/digest/bloom"
)

// Bounds on every [Geometry].
const (
	maxBits   = bloom.MaxBits   // m
	maxHashes = bloom.MaxHashes // k
)

// A Geometry says how keys become positions. All filters of one epoch share one, and
// there is a delta between two filters only if their geometries are equal. The zero
// Geometry is not valid: use [GeometryFor], or set the fields yourself.
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
// bits are rounded up to a multiple of 1024. The geometry has no seed yet. It is an error if there are no keys or the
// rate is out of range; the error wraps [ErrTooLarge] if no number of hashes is enough.
//
// The command "peer plan" chooses a geometry for a budget of traffic or memory.
func GeometryFor(keys uint64, falsePositiveRate float64) (Geometry, error) {
	fail := func(err error, why string) (Geometry, error) {
		return Geometry{}, fmt.Errorf("digest: geometry for %d keys at %v false positives: %w: %s", keys, falsePositiveRate, err, why)
	}
	if keys == 0 || !(falsePositiveRate > 0 && falsePositiveRate < 1) {
		return fail(errGeometry, "want at least 1 key, and a rate above 0 and below 1")
	}
	for k := 1; k <= maxHashes; k++ {
		if m, ok := bloom.FewestBits(keys, k, falsePositiveRate); ok {
			const multiple = 1024
			return Geometry{Bits: (m + multiple - 1) / multiple * multiple, Hashes: k}, nil
		}
	}
	return fail(ErrTooLarge, fmt.Sprintf("more than %d bits", uint64(maxBits)))
}

// validate reports everything that is wrong with g, wrapping errGeometry.
func (g Geometry) validate() error {
	var errs []error
	if g.Bits < 1 || g.Bits > maxBits {
		errs = append(errs, fmt.Errorf("digest: bits %d: %w: want 1 to %d", g.Bits, errGeometry, uint64(maxBits)))
	}
	if g.Profile == AnyProfile {
		errs = append(errs, fmt.Errorf("digest: profile %d: %w: it is for Limits", g.Profile, errGeometry))
	}
	if g.Hashes < 1 || g.Hashes > maxHashes {
		errs = append(errs, fmt.Errorf("digest: hashes %d: %w: want 1 to %d", g.Hashes, errGeometry, maxHashes))
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

// predict returns the share of positions that n keys set, and their rate of false positives.
func (g Geometry) predict(n uint64) (fill, falsePositives float64) {
	return bloom.Predict(g.Bits, g.Hashes, n)
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
