package lab

import (
	"math"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestExactFalsePositives enumerates every outcome of small filters.
func TestExactFalsePositives(t *testing.T) {
	for _, c := range []struct {
		m, n uint64
		k    int
	}{{2, 1, 1}, {2, 1, 2}, {3, 2, 2}, {4, 2, 2}, {3, 1, 3}, {5, 3, 2}, {2, 3, 2}} {
		draws := int(c.n)*c.k + c.k
		outcomes, positive := 1, 0
		for range draws {
			outcomes *= int(c.m)
		}
		for o := range outcomes {
			set, hit, rest := 0, true, o
			for d := range draws {
				p := rest % int(c.m)
				rest /= int(c.m)
				if d < int(c.n)*c.k {
					set |= 1 << p
				} else if set>>p&1 == 0 {
					hit = false
				}
			}
			if hit {
				positive++
			}
		}
		want := float64(positive) / float64(outcomes)
		if got := ExactFalsePositives(c.m, c.n, c.k); math.Abs(got-want) > 1e-14 {
			t.Errorf("exactFalsePositives(%d, %d, %d) = %v, want %v", c.m, c.n, c.k, got, want)
		}
	}
	// At 10,000 keys the documents' approximation is within 0.1 %.
	for _, k := range []int{1, 6, 11} {
		got, approximate := ExactFalsePositives(160_000, 10_000, k), FalsePositives(16, float64(k))
		if off := got/approximate - 1; off < 0 || off > 1e-3 {
			t.Errorf("exactFalsePositives(160000, 10000, %d) = %v, %v above (1-p)^k", k, got, off)
		}
	}
}

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
		if got, want := DeltaBits(mn, k, c), mn*Entropy(q); math.Abs(got/want-1) > 1e-12 {
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

// TestExactTiny checks that the least f that the flags allow survives the cancellation. So few
// of the positions are set there that (1-p)^k is nearly exact.
func TestExactTiny(t *testing.T) {
	const n, mn, k = 100, 1e6, 32
	got, want := ExactFalsePositives(n*mn, n, k), FalsePositives(mn, k)
	if math.Abs(got/want-1) > 1e-3 {
		t.Errorf("exactFalsePositives(%g, %d, %d) = %g, want about %g", n*mn, n, k, got, want)
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
