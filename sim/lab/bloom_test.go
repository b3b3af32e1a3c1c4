package lab

import (
	"math"
	"testing"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/bloom"
)

func TestBestInteger(t *testing.T) {
	for mn := 0.5; mn < 60; mn += 0.03 {
		best := BestInteger(mn)
		f := FalsePositives(mn, float64(best))
		if best > 1 && FalsePositives(mn, float64(best-1)) < f || FalsePositives(mn, float64(best+1)) < f {
			t.Errorf("bestInteger(%.2f) = %d, and a neighbour is better", mn, best)
		}
	}
}

// TestDeltaBits computes the values of section IV in another way, from each bit before and
// after, and checks the limits that the text gives.
func TestDeltaBits(t *testing.T) {
	for _, c := range []float64{0.01, 0.05, 0.3} {
		const mn, k = 20, 3
		p := math.Exp(-k / 20.0)
		q := 2 * p * (1 - math.Pow(p, c))
		if got, want := DeltaBits(mn, k, c), mn*bloom.Entropy(q); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("deltaBits(%v, %v, %v) = %v, want %v", mn, k, c, got, want)
		}
		// For p -> 1, f approaches 0.5^(z/2cn).
		far := 1e290
		z := DeltaBits(far, 1, c)
		if ratio := math.Log2(FalsePositives(far, 1)) / (-z / (2 * c)); math.Abs(ratio-1) > 0.01 {
			t.Errorf("c=%v: log2 f is %v of -z/2cn in the limit", c, ratio)
		}
	}
	if got := DeltaBits(8, 5, 1e-12); got > 1e-8 {
		t.Errorf("deltaBits without changes = %v", got)
	}
}

// TestGivenBits compares the formula with the entropies of the two sets that a delta is
// made of.
func TestGivenBits(t *testing.T) {
	const n, mn, k, c = 10_000, 30, 2, 0.1
	rng := Quiet(4).Source(0)
	held, keys, base, err := Filled(digest.Geometry{Bits: mn * n, Hashes: k}, rng, n)
	if err != nil {
		t.Fatal(err)
	}
	ReplaceKeys(held, rng, keys[:int(c*n)])
	next, d := held.AdvanceDelta()
	old, is := base.Ones(), next.Ones()
	clears := (uint64(d.Len()) + old - is) / 2
	bits := Log2Choose(mn*n-old, uint64(d.Len())-clears) + Log2Choose(old, clears)
	if want := GivenBits(mn, k, c) * n; math.Abs(bits/want-1) > 0.02 {
		t.Errorf("givenBits says %v bits, the sets have %v", want, bits)
	}
}
