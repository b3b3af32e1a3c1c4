package papers

import (
	"math"
	"testing"

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
