package lab

import (
	"math"
	"testing"
)

// TestBits: what is decoded is what was encoded, with odds of every kind, and the code is as long as
// the information.
func TestBits(t *testing.T) {
	for trial := range uint64(200) {
		rng := Quiet(3).Source(trial)
		n := int(Below(rng, 3000))
		odds, bits := make([]uint64, n), make([]bool, n)
		information := 0.0
		e := NewBitEncoder()
		for i := range bits {
			p := float64(Below(rng, 1<<20)+1) / (1<<20 + 1)
			if trial%3 == 0 {
				p = math.Pow(p, 9)
			}
			odds[i] = Odds(p)
			bits[i] = float64(Below(rng, 1<<30))/(1<<30) < p
			if trial%7 == 0 { // against the odds
				bits[i] = !bits[i]
			}
			if q := float64(odds[i]) / whole; bits[i] {
				information -= math.Log2(q)
			} else {
				information -= math.Log2(1 - q)
			}
			e.Encode(bits[i], odds[i])
		}
		code := e.Finish()
		if over := float64(8*len(code)) - information; over < 0 || over > 9 {
			t.Errorf("trial %d: %d bits for %.1f of information", trial, 8*len(code), information)
		}
		d := NewBitDecoder(code)
		for i, want := range bits {
			if d.Decode(odds[i]) != want {
				t.Fatalf("trial %d: bit %d of %d is not %v", trial, i, n, want)
			}
		}
	}
}
