package digest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// TestCountingAgainstOracle compares every geometry with a map of counters, under random
// additions, removals of present and absent keys, and freezes.
func TestCountingAgainstOracle(t *testing.T) {
	for i, g := range geometries {
		t.Run(g.String(), func(t *testing.T) {
			r := random(uint64(i))
			c := counting(t, g)
			o := &oracle{g, map[uint64]int{}}
			pool, steps := randomKeys(r, 600), 15_000
			if testing.Short() {
				steps = 1_500
			}
			for range steps {
				k := pool[r.IntN(len(pool))]
				switch r.IntN(12) {
				case 0, 1, 2, 3, 4:
					c.Add(k)
					o.add(k)
				case 11:
					if r.IntN(100) == 0 {
						checkFrozen(t, c, o)
					}
				default:
					if got, want := c.Remove(k), o.remove(k); got != want {
						t.Fatalf("Remove = %v, want %v", got, want)
					}
				}
				if k := pool[r.IntN(len(pool))]; c.MayContain(k) != o.has(k) {
					t.Fatalf("MayContain = %v", c.MayContain(k))
				}
			}
			checkFrozen(t, c, o)
		})
	}
}

func checkFrozen(t *testing.T, c *CountingFilter, o *oracle) {
	t.Helper()
	before, changed := c.Current(), c.Changed()
	f, d := c.AdvanceDelta()
	if d.Len() != changed {
		t.Fatalf("Changed = %d, delta has %d", changed, d.Len())
	}
	if (f == before) != (changed == 0) {
		t.Fatalf("Advance gave a new filter: %v, with %d changes", f != before, changed)
	}
	if !slices.Equal(f.list(), o.set()) {
		t.Fatalf("frozen positions differ from the oracle's")
	}
	if f.state() != f.Version().State {
		t.Fatalf("state %016x, want %016x", f.Version().State, f.state())
	}
	if again, err := d.Apply(before); err != nil {
		t.Fatalf("Apply = %v", err)
	} else {
		equalFilters(t, again, f)
	}
	diff, err := Diff(before, f)
	if err != nil || !slices.Equal(diff.flips, d.flips) {
		t.Fatalf("Diff = %v, %v, want the delta of Advance", diff, err)
	}
}

func TestSaturatedCountersStick(t *testing.T) {
	for _, g := range []Geometry{{Bits: 64, Hashes: 1}, {Bits: 1 << 30, Hashes: 3}} {
		c := counting(t, g)
		const k = Key(0x0123456789abcdef)
		for range 20 {
			c.Add(k)
		}
		for i := range 20 {
			if !c.Remove(k) {
				t.Errorf("%v: Remove %d refused", g, i)
			}
		}
		if !c.MayContain(k) {
			t.Errorf("%v: a counter left 15", g)
		}
		if within(c).Saturated() != g.Hashes || c.Len() != 0 {
			t.Errorf("%v: %d keys and %d stuck counters, want %d", g, c.Len(), within(c).Saturated(), g.Hashes)
		}
		for range 14 {
			c.Add(^k)
		}
		for i := range 15 {
			if got := c.Remove(^k); got != (i < 14) {
				t.Errorf("%v: Remove %d = %v", g, i, got)
			}
		}
	}
}

func TestRefusedRemovalChangesNothing(t *testing.T) {
	c := counting(t, Geometry{Bits: 1 << 30, Hashes: 4}, 1, 2, 3)
	f := c.Advance()
	for _, k := range randomKeys(random(1), 100) {
		if c.Remove(k) {
			t.Errorf("Remove(%x) = true", k)
		}
	}
	if c.Len() != 3 {
		t.Errorf("%d keys", c.Len())
	}
	if c.Advance() != f {
		t.Errorf("Advance found a change")
	}
}

// TestChurnBetweenFreezes: keys that are added and removed between two freezes leave nothing.
func TestChurnBetweenFreezes(t *testing.T) {
	if testing.Short() {
		t.Skip("adds and removes in one goroutine")
	}
	for _, g := range []Geometry{{Bits: 1 << 12, Hashes: 2}, {Bits: 1 << 34, Hashes: 1}} {
		r := random(3)
		c := counting(t, g, randomKeys(r, 200)...)
		c.Advance()
		before := 0
		for i := range 60_000 {
			if i == 10_000 {
				before = c.memoryBytes() // every shard has been used by now
			}
			k := Key(r.Uint64())
			c.Add(k)
			c.Remove(k)
		}
		if got := c.Changed(); got != 0 {
			t.Errorf("%v: Changed = %d", g, got)
		}
		if before, after := before, c.memoryBytes(); after > before*5/4 {
			t.Errorf("%v: %d bytes grew to %d", g, before, after)
		}
	}
}

// TestConcurrent has writers, readers and freezes at once. Afterwards the filter has what was
// added, and a key that was held throughout was never denied.
func TestConcurrent(t *testing.T) {
	for _, g := range []Geometry{{Bits: 40_000, Hashes: 3}, {Bits: 1 << 24, Hashes: 1}} {
		held := randomKeys(random(9), 500)
		c := counting(t, g, held...)
		const workers, rounds = 4, 3_000
		var wg sync.WaitGroup
		left := make([][]Key, workers)
		for w := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 1))
				for range rounds {
					if r.IntN(3) > 0 || len(left[w]) == 0 {
						k := Key(r.Uint64())
						c.Add(k)
						left[w] = append(left[w], k)
					} else {
						i := r.IntN(len(left[w]))
						if !c.Remove(left[w][i]) {
							t.Error("Remove refused a key that is there")
						}
						left[w] = slices.Delete(left[w], i, i+1)
					}
				}
			})
		}
		stop := make(chan struct{})
		var watch sync.WaitGroup
		watch.Go(func() {
			last := c.Advance()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				f := c.Advance()
				if k := held[i%len(held)]; !f.MayContain(k) || !c.MayContain(k) {
					t.Error("a key that was there throughout was denied")
					return
				}
				if f != last && f.Version().Sequence != last.Version().Sequence+1 {
					t.Errorf("sequence went from %v to %v", last.Version(), f.Version())
				}
				last = f
			}
		})
		wg.Wait()
		close(stop)
		watch.Wait()

		o := &oracle{g, map[uint64]int{}}
		n := 0
		for _, keys := range append(left, held) {
			n += len(keys)
			for _, k := range keys {
				o.add(k)
			}
		}
		checkFrozen(t, c, o)
		if c.Len() != n || c.Current().Keys() != uint64(n) {
			t.Errorf("Len = %d, Keys = %d, want %d", c.Len(), c.Current().Keys(), n)
		}
	}
}

// TestWritersShareKeys has writers with common keys and positions. A key that is added once
// more than it is removed stays.
func TestWritersShareKeys(t *testing.T) {
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
