package index

import (
	"fmt"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestReplaceAtBorders: a filter is compared with the last one in parts. What differs right before or after a border
// between two of them, at the first position or the last, is found, once.
func TestReplaceAtBorders(t *testing.T) {
	const common = 3*comparedAtOnce - 100 // and so three parts, with the few positions at their borders as well
	for _, m := range []uint64{1 << 23, 1<<23 - 1, 1<<40 - 87} {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			g := digest.Geometry{Bits: m, Hashes: 1}
			var borders []digest.Key
			for i := range uint64(4) {
				border := m * i / 3
				first := max(border, 2) - 2
				borders = append(borders, keysAt(first, m, int(min(border+2, m)-first))...)
			}
			keys := randomKeys(random(m), common)
			keys = slices.DeleteFunc(keys, func(k digest.Key) bool {
				return slices.ContainsFunc(borders, func(b digest.Key) bool { return high(uint64(k), m) == high(uint64(b), m) })
			})
			x := New()
			sets := [][]digest.Key{keys, slices.Concat(keys, borders), keys, borders, slices.Concat(keys, borders), nil}
			for i, set := range sets {
				f := filterOf(t, g, digest.Version{Epoch: uint64(i + 1)}, set)
				if err := x.Set("a", f); err != nil {
					t.Fatalf("Set(%d keys) = %v", len(set), err)
				}
				if got := x.peers["a"].layout; got != inTable {
					t.Fatalf("with %d keys the layout is %v, want a table", len(set), got)
				}
				audit(t, x, loop{"a": f})
			}
		})
	}
}
