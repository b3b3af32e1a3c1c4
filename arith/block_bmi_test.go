//go:build amd64 && !purego

package arith

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// sample is an array of m bits, each of which is one once in so many.
func sample(rng *rand.Rand, m, onceIn uint64) []uint64 {
	words := make([]uint64, wordsFor(m))
	for p := rng.Uint64N(2 * onceIn); p < m; p += 1 + rng.Uint64N(2*onceIn) {
		words[p/64] |= 1 << (p % 64)
	}
	return words
}

// TestBMISameBytes has both kinds of loops code and decode the same arrays, of all forms
// and of sizes around those of batches and chunks.
func TestBMISameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("codes in one goroutine")
	}
	if !useBMI {
		t.Skip("this machine has no BMI2")
	}
	defer func() { useBMI = true }()
	rng := rand.New(rand.NewPCG(31, 31))
	sizes := []uint64{1, 63, 64, 65, 4095, 4096, 4097, 8192 + 64, 64 * 129, 64*1024 + 17, 3_000_001}
	for _, onceIn := range []uint64{1, 2, 3, 7, 12, 14, 25, 30, 90, 400, 3000, 9000, 40_000} {
		for _, m := range sizes {
			words := sample(rng, m, onceIn)
			useBMI = false
			want := AppendBitmap(nil, Block, m, words)
			x := popcount(words)
			useBMI = true
			if popcount(words) != x {
				t.Fatalf("m=%d: %d ones, want %d", m, popcount(words), x)
			}
			if got := AppendBitmap(nil, Block, m, words); !bytes.Equal(got, want) {
				t.Fatalf("m=%d, one in %d: %d bytes with BMI2 differ from %d without", m, onceIn, len(got), len(want))
			}
			got := make([]uint64, len(words))
			if err := DecodeBitmap(got, Block, want, m, x); err != nil || !slices.Equal(got, words) {
				t.Fatalf("m=%d, one in %d: decoded with BMI2: %v, equal %t", m, onceIn, err, slices.Equal(got, words))
			}
		}
	}
}

// TestBMISameErrors has both decode what was broken: the same words, or the same error.
func TestBMISameErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("codes in one goroutine")
	}
	if !useBMI {
		t.Skip("this machine has no BMI2")
	}
	defer func() { useBMI = true }()
	rng := rand.New(rand.NewPCG(32, 32))
	decode := func(fast bool, code []byte, m, x uint64) ([]uint64, error) {
		useBMI = fast
		words := make([]uint64, wordsFor(m))
		return words, DecodeBitmap(words, Block, code, m, x)
	}
	refused := 0
	for _, onceIn := range []uint64{1, 3, 8, 14, 25, 40, 90, 400, 3000} {
		for range 300 {
			m := 1 + rng.Uint64N(30_000)
			words := sample(rng, m, onceIn)
			x, code := popcount(words), AppendBitmap(nil, Block, m, words)
			if len(code) == 0 {
				continue
			}
			for range 1 + rng.IntN(3) {
				code[rng.IntN(len(code))] ^= 1 << rng.IntN(8)
			}
			if rng.IntN(4) == 0 {
				code = code[:rng.IntN(len(code)+1)]
			}
			slow, want := decode(false, code, m, x)
			fast, got := decode(true, code, m, x)
			if got != want || got == nil && !slices.Equal(fast, slow) {
				t.Fatalf("m=%d, x=%d, code %x: %v with BMI2, %v without, equal %t", m, x, code, got, want, slices.Equal(fast, slow))
			}
			if got != nil {
				refused++
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d of 2,700 broken codes were refused", refused)
	}
}
