package lab

import (
	"math"
	"strconv"

	"github.com/summarycache/summarycache/digest/bloom"
)

// The formulas of the documents. mn is m/n, positions per key; k hashes per key.

// Zeros is p, the share of positions that stay zero: e^(-kn/m).
func Zeros(mn, k float64) float64 { return math.Exp(-k / mn) }

// FalsePositives is f, the asymptotic false-positive rate: (1-p)^k.
func FalsePositives(mn, k float64) float64 {
	return math.Pow(-math.Expm1(-k/mn), k)
}

// SentBits is z/n, the bits per key of a perfectly compressed filter.
func SentBits(mn, k float64) float64 { return mn * bloom.Entropy(-math.Expm1(-k/mn)) }

// DeltaBits is z/n of the perfectly compressed exclusive-or of two filters
// between which a share c of the keys was replaced (Mitzenmacher, section IV).
func DeltaBits(mn, k, c float64) float64 {
	return mn * bloom.Entropy(-2*Zeros(mn, k)*math.Expm1(-c*k/mn))
}

// GivenBits is z/n of the same delta, coded given the old filter: a zero becomes one with
// probability 1-p^c, and as many ones become zero.
func GivenBits(mn, k, c float64) float64 {
	p := Zeros(mn, k)
	set := -math.Expm1(-c * k / mn)
	return mn * (p*bloom.Entropy(set) + (1-p)*bloom.Entropy(set*p/(1-p)))
}

// ArrayAt is the m/n at which k hashes have the false-positive rate f.
func ArrayAt(f, k float64) float64 {
	return -k / math.Log1p(-math.Pow(f, 1/k))
}

// BestHashes is ln 2 · m/n, the k of least f if k is continuous.
func BestHashes(mn float64) float64 { return math.Ln2 * mn }

// BestInteger is the whole k >= 1 of least f: one of the two neighbours of
// bestHashes (Grothoff).
func BestInteger(mn float64) int {
	k := max(1, math.Floor(BestHashes(mn)))
	if FalsePositives(mn, k+1) < FalsePositives(mn, k) {
		k++
	}
	return int(k)
}

// OnesSD is the standard deviation of the number of ones among m positions
// after kn independent draws with kn/m = load: the classical occupancy variance
// m·e^-load·(1-(1+load)·e^-load).
func OnesSD(m, load float64) float64 {
	p := math.Exp(-load)
	return math.Sqrt(m * p * (1 - (1+load)*p))
}

// Round rounds to so many significant figures, so that printed numbers do not depend on the
// last bits of a machine's arithmetic.
func Round(x float64, digits int) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// Log2Choose is the binary logarithm of the number of sets of x out of m positions.
func Log2Choose(m, x uint64) float64 {
	lg := func(v uint64) float64 {
		l, _ := math.Lgamma(float64(v) + 1)
		return l
	}
	return (lg(m) - lg(x) - lg(m-x)) / math.Ln2
}

// BloomBits is the size of the smallest array with rate f, over all whole k.
func BloomBits(f float64) float64 {
	least := math.Inf(1)
	for k := 1.0; k <= 64; k++ {
		least = min(least, ArrayAt(f, k))
	}
	return least
}
