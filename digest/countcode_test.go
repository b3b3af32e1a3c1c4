package digest

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// TestCountingRoundTrip: a loaded filter has every count, and behaves like the saved one from
// then on.
func TestCountingRoundTrip(t *testing.T) {
	for _, g := range geometries {
		t.Run(g.String(), func(t *testing.T) {
			r := random(g.Bits)
			keys := randomKeys(r, 700)
			for range 300 {
				keys = append(keys, keys[r.IntN(50)]) // some often, and some counters stuck
			}
			saved := counting(t, g, keys...)
			b := saved.AppendTo([]byte("x"))[1:]
			back, err := DecodeCountingFilter(b, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			equalFilters(t, back.Current(), saved.Current())
			if back.Advance() != back.Current() || back.Changed() != 0 {
				t.Error("Advance or Changed reports a change")
			}
			if back.Len() != saved.Len() || back.Saturated() != saved.Saturated() {
				t.Errorf("%d keys and %d stuck counters, want %d and %d", back.Len(), back.Saturated(), saved.Len(), saved.Saturated())
			}
			if !slices.Equal(back.AppendTo(nil), b) {
				t.Error("saved again, it has other bytes")
			}
			if !back.Verify(slices.Values(keys)) || back.Verify(slices.Values(keys[1:])) {
				t.Error("Verify is wrong")
			}
			for _, k := range keys {
				if saved.Remove(k) != back.Remove(k) {
					t.Fatal("Remove differs")
				}
			}
			equalFilters(t, back.Advance(), saved.Advance())
		})
	}
}

// TestCountingIsSentNearItsEntropy: the counts take little more than the entropy of truncated
// Poisson counts (Mitzenmacher, section V).
func TestCountingIsSentNearItsEntropy(t *testing.T) {
	const n = 20_000
	for _, g := range []Geometry{{Bits: 8 * n, Hashes: 5}, {Bits: 14 * n, Hashes: 2}, {Bits: 1000 * n, Hashes: 1}} {
		c := counting(t, g, randomKeys(random(1), n)...)
		load := float64(n*g.Hashes) / float64(g.Bits)
		limit, p := 0.0, math.Exp(-load)
		for i := range maxCount {
			limit -= float64(g.Bits) * p * math.Log2(p)
			p *= load / float64(i+1)
		}
		got := 8 * float64(len(c.AppendTo(nil)))
		if got > limit*1.01+800 {
			t.Errorf("%v: %.0f bits, entropy %.0f, four-bit counters %d", g, got, limit, 4*g.Bits)
		}
	}
}

func TestDecodeCountingRefuses(t *testing.T) {
	c := counting(t, geometries[4], randomKeys(random(1), 500)...)
	good := c.AppendTo(nil)
	for n := 4 + checksumBytes; n < len(good); n++ {
		if _, err := DecodeCountingFilter(reseal(slices.Clone(good[:n])), Limits{}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("first %d bytes: %v", n, err)
		}
	}
	if _, err := DecodeCountingFilter(c.Current().AppendTo(nil), Limits{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a filter passed for a counting filter: %v", err)
	}
	if _, err := DecodeFilter(good, Limits{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a counting filter passed for a filter: %v", err)
	}
	if _, err := DecodeCountingFilter(good, Limits{Memory: 1000}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond the memory: %v", err)
	}
}
