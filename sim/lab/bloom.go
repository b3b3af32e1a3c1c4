package lab

import (
	"math"
	"math/big"
	"strconv"
)

// The formulas of the documents. mn is m/n, positions per key; k hashes per key.

// Zeros is p, the share of positions that stay zero: e^(-kn/m).
func Zeros(mn, k float64) float64 { return math.Exp(-k / mn) }

// FalsePositives is f, the asymptotic false-positive rate: (1-p)^k.
func FalsePositives(mn, k float64) float64 {
	return math.Pow(-math.Expm1(-k/mn), k)
}

// Entropy is H(p), in bits.
func Entropy(p float64) float64 {
	if p <= 0 || p >= 1 {
		return 0
	}
	return -p*math.Log2(p) - (1-p)*math.Log1p(-p)/math.Ln2
}

// SentBits is z/n, the bits per key of a perfectly compressed filter.
func SentBits(mn, k float64) float64 { return mn * Entropy(-math.Expm1(-k/mn)) }

// DeltaBits is z/n of the perfectly compressed exclusive-or of two filters
// between which a share c of the keys was replaced (Mitzenmacher, section IV).
func DeltaBits(mn, k, c float64) float64 {
	return mn * Entropy(-2*Zeros(mn, k)*math.Expm1(-c*k/mn))
}

// GivenBits is z/n of the same delta, coded given the old filter: a zero becomes one with
// probability 1-p^c, and as many ones become zero.
func GivenBits(mn, k, c float64) float64 {
	p := Zeros(mn, k)
	set := -math.Expm1(-c * k / mn)
	return mn * (p*Entropy(set) + (1-p)*Entropy(set*p/(1-p)))
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

// ExactFalsePositives is the probability that k independent uniform positions are all set after
// kn independent uniform draws in [0, m), which (1-p)^k approximates. It does not assume that
// positions are set independently of each other: it sums over the number j of distinct
// positions that are looked up, by inclusion and exclusion over their 2^j subsets.
func ExactFalsePositives(m, n uint64, k int) float64 {
	const precision = 1024 // bits: the alternating sum cancels all but f of itself, which is 2^-480 or more for all values of the flags
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	size := number(float64(m))

	// untouched[i] is the probability that i given positions all stay zero.
	untouched := make([]*big.Float, k+1)
	for i := range untouched {
		share := number(max(0, float64(m)-float64(i)))
		untouched[i] = power(share.Quo(share, size), uint64(k)*n)
	}
	// distinct[j] is the probability that k draws hit exactly j positions.
	distinct := make([]*big.Float, k+1)
	for j := range distinct {
		distinct[j] = number(0)
	}
	distinct[0] = number(1)
	for range k {
		for j := k; j >= 0; j-- {
			stay := number(float64(j))
			distinct[j].Mul(distinct[j], stay.Quo(stay, size))
			if j > 0 {
				fresh := number(max(0, float64(m)-float64(j-1)))
				fresh.Quo(fresh, size)
				distinct[j].Add(distinct[j], fresh.Mul(fresh, distinct[j-1]))
			}
		}
	}
	sum := number(0)
	for j := range distinct {
		binomial := new(big.Int)
		for i := 0; i <= j; i++ {
			term := new(big.Float).SetPrec(precision).SetInt(binomial.Binomial(int64(j), int64(i)))
			term.Mul(term, untouched[i])
			term.Mul(term, distinct[j])
			if i%2 == 1 {
				term.Neg(term)
			}
			sum.Add(sum, term)
		}
	}
	f, _ := sum.Float64()
	return f
}

func power(x *big.Float, n uint64) *big.Float {
	result := new(big.Float).SetPrec(x.Prec()).SetInt64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, x)
		}
		x = new(big.Float).Mul(x, x)
	}
	return result
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
