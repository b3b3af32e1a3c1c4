package digest

import (
	"slices"
	"sync"
	"testing"
)

func TestAddAll(t *testing.T) {
	if testing.Short() {
		t.Skip("adds in one goroutine: TestAddAllWhileCountersMove adds in several")
	}
	for _, g := range geometries {
		keys := randomKeys(random(g.Bits), 3_000)
		one, all := counting(t, g, keys...), counting(t, g)
		all.AddAll(nil)
		all.AddAll(keys[:1])
		all.AddAll(keys[1:])
		if !slices.Equal(one.Advance().list(), all.Advance().list()) || one.Tally() != all.Tally() {
			t.Errorf("%v: AddAll differs from Add: %+v, want %+v", g, all.Tally(), one.Tally())
		}
		refused := 0
		for _, k := range append(slices.Clone(keys[:2_000]), keys[:100]...) {
			if !one.Remove(k) {
				refused++
			}
		}
		got := all.RemoveAll(append(slices.Clone(keys[:2_000]), keys[:100]...))
		if got != refused || !slices.Equal(one.Advance().list(), all.Advance().list()) || one.Tally() != all.Tally() {
			t.Errorf("%v: RemoveAll = %d refused, want %d; %+v, want %+v", g, got, refused, all.Tally(), one.Tally())
		}
	}
}

// TestAddAllWhileCountersMove: asking memory ahead looks at counters without a lock,
// while others move them to a larger table, or replace them.
func TestAddAllWhileCountersMove(t *testing.T) {
	for _, g := range []Geometry{{Bits: 40_000, Hashes: 3}, {Bits: 1 << 24, Hashes: 1}, {Bits: 1 << 33, Hashes: 2}} {
		keys := randomKeys(random(3), 20_000)
		if testing.Short() {
			keys = keys[:4_000]
		}
		c := counting(t, g)
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for some := range slices.Chunk(keys[w*len(keys)/2:(w+1)*len(keys)/2], 500) {
					c.AddAll(some)
				}
			})
		}
		for range 5 {
			if err := c.Rebuild(g, slices.Values([]Key(nil))); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		if err := c.Rebuild(g, slices.Values(keys)); err != nil || !c.Verify(slices.Values(keys)) {
			t.Errorf("%v: %v; %d keys, want %d", g, err, c.Len(), len(keys))
		}
	}
}
