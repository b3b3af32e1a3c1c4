package arith

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn returns x positions in [0, m).
func drawn(r *rand.Rand, m uint64, x int) []uint64 {
	found := map[uint64]bool{}
	for len(found) < x {
		found[r.Uint64N(m)] = true
	}
	list := make([]uint64, 0, x)
	for p := range found {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// TestPair: two sets are one code, which the decoder takes apart, and no other bytes are accepted.
func TestPair(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 44))
	for _, c := range []struct {
		m uint64
		x int
		n uint64
		y int
	}{
		{0, 0, 0, 0}, {1, 1, 1, 0}, {5, 5, 3, 3}, {100, 0, 100, 7}, {1 << 27, 1, 100_000, 1}, {MaxUniverse, 4, 10, 9},
		{1 << 30, 100, 5000, 4990}, {1 << 30, 3000, 200, 3}, {1 << 20, 3, 1 << 20, 4000}, {1 << 20, 5000, 50_000, 25_000},
	} {
		a, b := drawn(r, c.m, c.x), drawn(r, c.n, c.y)
		code := AppendPair([]byte("x"), c.m, a, c.n, b)[1:]
		x, y := uint64(c.x), uint64(c.y)
		gotA, gotB, err := DecodePair(code, c.m, x, c.n, y)
		if err != nil || !slices.Equal(gotA, a) || !slices.Equal(gotB, b) {
			t.Errorf("%+v: %d bytes decode to %d and %d positions, %v", c, len(code), len(gotA), len(gotB), err)
		}
		apart := len(AppendSet(nil, Choose(c.m, x), c.m, a)) + len(AppendSet(nil, Choose(c.n, y), c.n, b))
		if len(code) > apart+3 || Choose(c.m, x)+Choose(c.n, y) == Adaptive && len(code) > apart+1 {
			t.Errorf("%+v: %d bytes together, %d apart", c, len(code), apart)
		}
		for range 200 {
			other := slices.Clone(code)
			switch {
			case len(other) > 0 && r.IntN(2) == 0:
				other[r.IntN(len(other))] ^= 1 << r.IntN(8)
			case len(other) > 0 && r.IntN(2) == 0:
				other = other[:r.IntN(len(other))]
			default:
				other = append(other, byte(r.Uint32()))
			}
			gotA, gotB, err := DecodePair(other, c.m, x, c.n, y)
			if err == nil {
				if again := AppendPair(nil, c.m, gotA, c.n, gotB); !slices.Equal(again, other) {
					t.Fatalf("%+v: %x is accepted, and would be written as %x", c, other, again)
				}
			} else if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%+v: %v", c, err)
			}
		}
	}
	// The changes in FORMAT.md, section 4.
	if got := hex.EncodeToString(AppendPair(nil, 996, []uint64{199, 897}, 4, []uint64{1, 3})); got != "54a2c2" {
		t.Errorf("199 and 897 of 996, 1 and 3 of 4: %s", got)
	}
	for name, bad := range map[string]struct {
		code       []byte
		m, x, n, y uint64
		want       error
	}{
		"more than there are":             {nil, 5, 6, 5, 0, ErrCorrupt},
		"too few bytes for the second":    {make([]byte, 2), 100, 0, 1 << 40, 200, ErrTruncated},
		"too large a universe":            {make([]byte, 9), MaxUniverse + 1, 1, 5, 0, ErrCorrupt},
		"no length":                       {nil, 1 << 30, 3000, 5, 0, ErrCorrupt},
		"a length that is not minimal":    {[]byte{0x80, 0}, 1 << 30, 3000, 5, 0, ErrCorrupt},
		"a length beyond the end":         {[]byte{200, 1, 2}, 1 << 30, 3000, 5, 0, ErrTruncated},
		"bytes for a set that needs none": {[]byte{1}, 5, 0, 5, 0, ErrCorrupt},
	} {
		if _, _, err := DecodePair(bad.code, bad.m, bad.x, bad.n, bad.y); !errors.Is(err, bad.want) {
			t.Errorf("%s: %v, want %v", name, err, bad.want)
		}
	}
}
