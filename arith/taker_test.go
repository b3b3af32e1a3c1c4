package arith

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDecodeSetTo hands on what DecodeSet returns, by either method, from an empty set
// to a full one and to several chunks, and fails as it does.
func TestDecodeSetTo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ m, x uint64 }{
		{1, 0}, {1, 1}, {1000, 0}, {1000, 1000}, {1000, 30}, {1000, 500}, {1000, 970},
		{3_000_000, 500_000}, {1 << 30, 200_000}, {400_000, 390_000},
	} {
		positions := positionsOf(drawWords(rng, min(c.m, 1<<23), c.x))
		for _, method := range []Method{Adaptive, Block} {
			t.Run(fmt.Sprintf("m=%d/x=%d/%v", c.m, c.x, method), func(t *testing.T) {
				code := AppendSet(nil, method, c.m, positions)
				x := uint64(len(positions))
				var got []uint64
				take := func(some []uint64) { got = append(got, some...) }
				if err := DecodeSetTo(method, code, c.m, x, take); err != nil || !slices.Equal(got, positions) {
					t.Fatalf("%d positions, %v, want %d", len(got), err, len(positions))
				}
				for _, bad := range [][]byte{append(slices.Clone(code), 0), code[:len(code)/2], nil} {
					_, want := DecodeSet(nil, method, bad, c.m, x)
					if err := DecodeSetTo(method, bad, c.m, x, take); err != want {
						t.Errorf("of %d bytes: %v, DecodeSet says %v", len(bad), err, want)
					}
				}
			})
		}
	}
}
