// Package bloom has what follows from the size of a Bloom filter alone: pure functions of m, k and n, which digest, the
// planner of cmd/peer and gossip share.
package bloom

import "math"

// Bounds of the digest format.
const (
	MaxBits   = 1 << 44 // m
	MaxHashes = 32      // k
)

// EntryBytes is about what an index of package index takes for each set position of a peer, in bytes: less if many
// peers hold the same keys, up to the 5.3 measured with a thousand peers of 100,000 different ones, and room to grow.
const EntryBytes = 6

// Predict returns the expected share of positions that n keys set, and the expected
// false-positive rate. These are 1-(1-1/m)^(kn) and its k-th power (Mitzenmacher, section II-A).
// From three hashes on the rate also includes keys that double hashing cannot distinguish, of the order of n/m²: next
// to nothing in a filter of thousands of keys, and a third of the rate for 100 keys, 17 bits a key and 8 hashes.
func Predict(bits uint64, hashes int, n uint64) (fill, falsePositives float64) {
	if bits == 1 {
		if n == 0 {
			return 0, 0
		}
		return 1, 1
	}
	fill = -math.Expm1(float64(hashes) * float64(n) * math.Log1p(-1/float64(bits)))
	return fill, FalsePositives(bits, hashes, fill)
}

// FalsePositives returns the false-positive rate of a filter of which a share p is set.
func FalsePositives(bits uint64, hashes int, p float64) float64 {
	k := float64(hashes)
	return min(1, math.Pow(p, k)+alike(float64(bits), k, p))
}

// alike returns what double hashing adds to the rate of false positives, for a fill of p. Two positions of a key are
// independent, and the power has all of their chances. From the third on there are two more, which tests compare with
// an enumeration.
//
// The stride may be nearly a q-th of all positions, or several, so that the k positions are q groups of neighbours, as
// for 1 a single group. The more the stride differs, the more often a group goes on to the next position, until its
// positions are no neighbours any more.
//
// Or a key has the stride of a held key, but for less than a position, or runs backwards with it, so that c of its
// positions in a row are among the held key's, and the other k-c are set by chance. There are (k-c+1)² ways to lay such
// a row, less those of longer rows.
func alike(m, k, p float64) float64 {
	if k < 3 {
		return 0
	}
	held := -math.Log1p(-p) / k // keys for each position
	near, same := 0.0, 0.0
	for n, q, group := 1, 1.0, p; q <= k/2 && group > negligible*p; n, q, group = n+1, q+1, group*p {
		between := sum(p, n+1) / (q + 1) // the mean of (1-t+tp)^q for t from 0 to 1
		near += coprime[n] * 2 * group * between * sum(group, int(k-1)/n)
	}
	longer, longest := 0.0, 0.0 // shared by one and two more
	for c, ways, chance := k, 1.0, 1.0; c >= 3 && chance > negligible; c, ways, chance = c-1, ways+1, chance*p {
		volume := shared(c)
		same += chance * (ways*ways*volume - 2*(ways-1)*(ways-1)*longer + (ways-2)*(ways-2)*longest)
		longer, longest = volume, longer
	}
	return (near/(k-1) + 2*held*same) / m
}

const negligible = 1e-4 // share of the first term

// sum returns 1 + x + x² and so on, of n terms.
func sum(x float64, n int) (s float64) {
	for range n {
		s = 1 + s*x
	}
	return s
}

// coprime has how many of 1 to q have no factor in common with q, up to half of MaxHashes.
var coprime = [...]float64{0, 1, 1, 2, 2, 4, 2, 6, 4, 6, 4, 10, 4, 12, 6, 8, 8}

// shared returns the volume of the differences u and v of start and stride, in positions, at which c positions are the
// same: the integral of the product of 1-|u+iv| over i from 0 to c-1, to within 4 %.
func shared(c float64) float64 { return 1 / (c*c*c/30 + 0.18*c*c) }

// FewestBits returns the smallest m at which n keys with k hashes have a
// false-positive rate of at most f.
func FewestBits(n uint64, k int, f float64) (m uint64, ok bool) {
	rate := func(m uint64) float64 {
		_, rate := Predict(m, k, n)
		return rate
	}
	switch {
	case rate(MaxBits) > f:
		return 0, false
	case rate(1) <= f:
		return 1, true
	}
	// The asymptotic formula is nearly right.
	low, high := uint64(1), uint64(MaxBits)
	guess := -float64(k) * float64(n) / math.Log1p(-math.Pow(f, 1/float64(k)))
	if near := uint64(guess * 0.999999); near > 2 && near-2 < high && rate(near-2) > f {
		low = near - 2
	}
	if near := guess*1.000001 + 50; near < MaxBits && rate(uint64(near)) <= f {
		high = uint64(near)
	}
	return Search(low, high, func(m uint64) bool { return rate(m) > f }) + 1, true
}

// Search returns the largest number in [low, high] that fits, given that low does and
// that every number above one that does not fit does not fit either.
func Search(low, high uint64, fits func(uint64) bool) uint64 {
	for low < high {
		mid := high - (high-low)/2
		if fits(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// Entropy is the entropy, in bits, of a bit that is one with probability p.
func Entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log2(p) - (1-p)*math.Log1p(-p)/math.Ln2
}
