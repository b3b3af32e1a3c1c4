package digest

import (
	"slices"
	"sync"
	"testing"
)

func TestSortWords(t *testing.T) {
	r := random(1)
	for _, n := range []int{0, 1, 255, 256, 5_000} {
		for _, limit := range []int{1, 2_047, 2_048, 1 << 22, 1<<22 + 1, 1 << 27} {
			list := make([]uint32, n)
			for i := range list {
				list[i] = uint32(r.IntN(limit))
			}
			want := slices.Sorted(slices.Values(list))
			if got := sortWords(list, limit); !slices.Equal(got, want) {
				t.Errorf("%d numbers below %d are not sorted", n, limit)
			}
		}
	}
}

// TestFlatTakesAllOrNothing: a removal that finds a counter at zero, since somebody
// else came first, undoes what it did to the others.
func TestFlatTakesAllOrNothing(t *testing.T) {
	c := counting(t, Geometry{Bits: 10_000, Hashes: 3}, 1).counters.Load()
	var buf [MaxHashes]uint64
	positions := c.geometry.positions(&buf, 1)
	s := c.keeper(1)
	before := slices.Clone(c.flat)
	if c.flatTake(s, append(slices.Clone(positions), (positions[0]+1)%10_000)) {
		t.Error("a counter of zero was taken from")
	}
	for i := range before {
		if (before[i]^c.flat[i])&^flatListed != 0 {
			t.Errorf("word %d went from %x to %x", i, before[i], c.flat[i])
		}
	}
}

// TestFlatWrites has writers that share positions and disagree on what is there:
// whatever is added once more than it is removed stays.
func TestFlatWrites(t *testing.T) {
	c := counting(t, Geometry{Bits: 500, Hashes: 4})
	keys := randomKeys(random(2), 40)
	for _, k := range keys {
		c.Add(k)
	}
	rounds := 20_000
	if testing.Short() {
		rounds = 4_000
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := random(uint64(w))
			for range rounds {
				k := keys[r.IntN(len(keys))]
				c.Add(k)
				if r.IntN(50) == 0 {
					c.Advance()
				}
				c.Remove(k)
			}
		})
	}
	wg.Wait()
	f := c.Advance()
	for _, k := range keys {
		if !c.MayContain(k) || !f.MayContain(k) {
			t.Fatalf("key %x is gone", k)
		}
	}
	if c.Len() != len(keys) || c.Changed() != 0 {
		t.Errorf("Len %d, Changed %d", c.Len(), c.Changed())
	}
}
