package digest

import (
	"fmt"
	"slices"
	"testing"
)

// TestFlipAgainstRebuild applies flips of every size to sets of every size, also where the form
// changes, and compares with a new filter.
func TestFlipAgainstRebuild(t *testing.T) {
	for _, m := range []uint64{4_100, 70_000, 1 << 22, 1 << 40} {
		for _, before := range []int{0, 1, 130, 3_000} {
			for _, flips := range []int{0, 1, 2, 63, 900, 6_000} {
				t.Run(fmt.Sprintf("m=%d/before=%d/flips=%d", m, before, flips), func(t *testing.T) {
					old := randomSet(m, before, m)
					changed := randomSet(m, flips, m+1)
					changed = append(changed, old[:len(old)/2]...) // half of the old ones are removed
					slices.Sort(changed)
					changed = slices.Compact(changed)
					want := slices.DeleteFunc(append(slices.Clone(old), changed...), func(p uint64) bool {
						_, was := slices.BinarySearch(old, p)
						_, flips := slices.BinarySearch(changed, p)
						return was && flips
					})
					slices.Sort(want)
					g := Geometry{Bits: m, Hashes: 1}
					base := newFilter(g, Version{Epoch: 1}, 0, old)
					target := newFilter(g, Version{Epoch: 1, Sequence: 1}, 0, want)
					base.version.State, target.version.State = base.state(), target.state()
					d, err := Diff(base, target)
					if err != nil || !slices.Equal(d.flips, changed) {
						t.Fatalf("Diff finds %d flips, want %d: %v", d.Len(), len(changed), err)
					}
					got, err := d.Apply(base)
					if err != nil {
						t.Fatal(err)
					}
					equalFilters(t, got, target)
					for _, p := range changed {
						if _, is := slices.BinarySearch(want, p); got.contains(p) != is {
							t.Fatalf("position %d is %v", p, !is)
						}
					}
				})
			}
		}
	}
}
