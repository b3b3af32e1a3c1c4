package digest

import (
	"fmt"
	"math"
)

// planRounding is what planned sizes are a multiple of, so that filters can be
// folded several times.
const planRounding = 1024

// PlanForError returns the geometry that sends keys objects in the fewest bytes
// at a false-positive rate of at most f: one hash, and a position space of
// keys/f, which stays a compact sorted set in memory (Mitzenmacher, section
// II-B, where the number of hashes goes to its lower limit). keys is at least 1;
// f is above 0 and below 1.
func PlanForError(keys uint64, f float64) (Geometry, error) {
	if keys == 0 || !(f > 0 && f < 1) {
		return Geometry{}, fmt.Errorf("digest: plan for %d keys at %v false positives: %w", keys, f, ErrGeometry)
	}
	// f = 1-(1-1/m)^n, solved for m.
	bits := -1 / math.Expm1(math.Log1p(-f)/float64(keys))
	return planned(bits)
}

// PlanForSize returns the geometry of fewest false positives that sends keys
// objects in at most about the given number of bytes, and the rate it will have.
// One hash with n·(log2(m/n)+log2(e)) bits is nearly the information limit.
func PlanForSize(keys uint64, bytes int) (Geometry, float64, error) {
	if keys == 0 || bytes <= 0 {
		return Geometry{}, 0, fmt.Errorf("digest: plan for %d keys in %d bytes: %w", keys, bytes, ErrGeometry)
	}
	size := func(m float64) float64 {
		fill := -math.Expm1(float64(keys) * math.Log1p(-1/m))
		return m * entropy(fill) / 8
	}
	low, high := float64(planRounding), float64(MaxBits)
	if size(low) > float64(bytes) {
		return Geometry{}, 0, fmt.Errorf("digest: plan for %d keys in %d bytes: %w: too few bytes", keys, bytes, ErrTooLarge)
	}
	for high-low > planRounding/2 {
		if mid := (low + high) / 2; size(mid) > float64(bytes) {
			high = mid
		} else {
			low = mid
		}
	}
	g, err := planned(low - planRounding)
	_, f := g.Predict(keys)
	return g, f, err
}

func planned(bits float64) (Geometry, error) {
	if bits > MaxBits {
		return Geometry{}, fmt.Errorf("digest: plan needs %.0f bits: %w: at most %d", bits, ErrTooLarge, uint64(MaxBits))
	}
	m := (uint64(math.Ceil(bits)) + planRounding - 1) / planRounding * planRounding
	return Geometry{Bits: max(m, planRounding), Hashes: 1, Scheme: Double}, nil
}

// entropy is that of one bit which is one with probability p, in bits.
func entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log2(p) - (1-p)*math.Log1p(-p)/math.Ln2
}
