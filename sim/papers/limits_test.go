package papers

import (
	"math"
	"testing"

	"github.com/summarycache/summarycache/digest/bloom"
	"github.com/summarycache/summarycache/sim/lab"
)

// TestExponent compares the exponent with the paper's formula of β, and with its limits.
func TestExponent(t *testing.T) {
	for _, p := range []float64{0.1, 0.5, 0.9, 0.999} {
		h := -p*math.Log2(p) - (1-p)*math.Log2(1-p)
		if got, want := math.Exp2(-exponent(-math.Log(p), lab.SentBits)), math.Exp(-math.Log(p)*math.Log(1-p)/h); math.Abs(got-want) > 1e-12 {
			t.Errorf("p = %v: β = %v, want %v", p, got, want)
		}
		for _, c := range []float64{0.01, 0.3} {
			q := 2 * p * (1 - math.Pow(p, c))
			h := -q*math.Log2(q) - (1-q)*math.Log2(1-q)
			if got, want := exponent(-math.Log(p), xor(c)), math.Log(p)*math.Log(1-p)/h/math.Ln2; math.Abs(got/want-1) > 1e-9 {
				t.Errorf("p = %v, c = %v: exponent %v, want %v", p, c, got, want)
			}
		}
	}
	// The exponent of deltas approaches its limit as slowly as 1/ln(1-p).
	const load = 1e-300
	for _, c := range []float64{0.01, 0.3, 0.49} {
		if got := c * exponent(load, xor(c)); math.Abs(got-0.5) > 0.01 {
			t.Errorf("c = %v: %v for each bit, want 1/2", c, got)
		}
		if got := c * exponent(load, givenOld(c)); math.Abs(got-1) > 0.01 {
			t.Errorf("c = %v, given the old: %v for each bit, want 1", c, got)
		}
	}
	if c := conjectureReach(); c < 0.69 || c > 0.7 {
		t.Errorf("the conjecture reaches to %v", c)
	}
}

// TestPoissonEntropy compares with a plain sum.
func TestPoissonEntropy(t *testing.T) {
	for _, load := range []float64{1e-4, 0.1, math.Ln2, 4} {
		want, p := 0.0, math.Exp(-load)
		for i := 1; i < 100; i++ {
			if p > 0 {
				want -= p * math.Log2(p)
			}
			p *= load / float64(i)
		}
		if got := poissonEntropy(load); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("poissonEntropy(%v) = %v, want %v", load, got, want)
		}
	}
}

// An interval has two bounds. Each operation pads them by the relative error that functions of package
// math are assured of many times over.
type interval struct{ low, high float64 }

func pad(low, high float64) interval {
	const slack = 1e-13
	return interval{low - slack*math.Abs(low), high + slack*math.Abs(high)}
}

// advantage bounds H(2p(1-p^c)) - 2c·ln p·log2(1-p) from below and above for p in [a, b], c <= 1: see
// PROOFS.md, section 3. Positive means that p is no better than the limit p → 1.
func advantage(a, b, c float64) interval {
	h := func(q float64) interval { return pad(bloom.Entropy(q), bloom.Entropy(q)) }
	// -ln p falls and -log2(1-p) grows; p grows and 1-p^c falls.
	product := pad(2*c*math.Log(b)*math.Log1p(-a)/math.Ln2, 2*c*math.Log(a)*math.Log1p(-b)/math.Ln2)
	q := pad(-2*a*math.Expm1(c*math.Log(b)), -2*b*math.Expm1(c*math.Log(a)))
	least, most := h(q.low).low, 1.0 // H is concave: its least value is at an end, as far as q is below 1
	if q.high < 1 {
		least = min(least, h(q.high).low)
	} else {
		least = 0
	}
	if q.high < 0.5 {
		most = h(q.high).high
	}
	return pad(least-product.high, most-product.low)
}

// TestConjectureCertificate proves by interval arithmetic, between the ends that PROOFS.md treats, that no p
// is better than the limit at c = 0.69072, and that one is at c = 0.69074.
func TestConjectureCertificate(t *testing.T) {
	const holds, fails = 0.69072, 0.69074
	const first, last = 1. / 1024, 1 - 1./2048
	boxes := 0
	var prove func(a, b float64) bool
	prove = func(a, b float64) bool {
		if boxes++; advantage(a, b, holds).low > 0 {
			return true
		}
		middle := (a + b) / 2
		return b-a > 1e-9 && prove(a, middle) && prove(middle, b)
	}
	if !prove(first, last) {
		t.Errorf("not proved for c = %v", holds)
	}
	if boxes < 100 {
		t.Errorf("%d boxes", boxes)
	}
	best := 0.0
	for p := 0.5; p < 0.55; p += 1e-4 {
		if advantage(p, p, fails).high < 0 {
			best = p
		}
	}
	if best == 0 {
		t.Errorf("no p is better at c = %v", fails)
	}
	if c := conjectureReach(); c <= holds || c >= fails {
		t.Errorf("the conjecture reaches to %v", c)
	}
	t.Logf("%d boxes; p = %.4f is better at c = %v", boxes, best, fails)
}
