package digest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRebuild(t *testing.T) {
	keys := randomKeys(random(1), 5_000)
	c := counting(t, Geometry{Bits: 1 << 36, Hashes: 1}, keys...)
	before := c.Advance()
	g := Geometry{Bits: 70_000, Hashes: 2, Seed: 99}
	if err := c.Rebuild(g, slices.Values(keys)); err != nil {
		t.Fatal(err)
	}
	want := counting(t, g, keys...).Advance()
	got := c.Current()
	if got.Version() != (Version{before.Version().Epoch + 1, 1, want.Version().State}) {
		t.Errorf("version %v after %v", got.Version(), before.Version())
	}
	if !slices.Equal(got.list(), want.list()) || c.Len() != len(keys) {
		t.Errorf("rebuilt filter differs, Len = %d", c.Len())
	}
	if _, err := Diff(before, got); err == nil {
		t.Error("Diff across epochs succeeded")
	}
	if err := c.Rebuild(Geometry{}, slices.Values(keys)); err == nil || c.Current() != got {
		t.Errorf("Rebuild with no geometry = %v", err)
	}
}

// TestRebuildUnderWrites changes the geometry again and again while writers add,
// remove and replace. Afterwards every counter is exact.
// TestRebuildKeepsWhatIsBeingReplaced: an object that is replaced by itself is
// added before it is removed, and a rebuild may come between.
func TestRebuildKeepsWhatIsBeingReplaced(t *testing.T) {
	c := counting(t, Geometry{Bits: 1 << 30, Hashes: 2}, 1, 2, 3)
	c.Add(2)
	if err := c.Rebuild(c.Geometry(), slices.Values([]Key{1, 2, 3})); err != nil {
		t.Fatal(err)
	}
	if !c.Remove(2) || !c.MayContain(2) || !c.Remove(2) || c.MayContain(2) {
		t.Error("the key that was being replaced was lost, or stays for ever")
	}
}

func TestRebuildUnderWrites(t *testing.T) {
	var store sync.Map // Key -> struct{}
	c := counting(t, Geometry{Bits: 1 << 36, Hashes: 1})
	for _, k := range randomKeys(random(4), 2_000) {
		c.Add(k)
		store.Store(k, nil)
	}
	var wg sync.WaitGroup
	var stop atomic.Bool
	for w := range 3 {
		wg.Go(func() {
			r := random(uint64(100 + w))
			var mine []Key
			for !stop.Load() {
				switch n := r.IntN(3); {
				case n == 0 || len(mine) == 0:
					k := Key(r.Uint64())
					store.Store(k, nil)
					c.Add(k)
					mine = append(mine, k)
				case n == 1: // an object replaced by itself
					k := mine[r.IntN(len(mine))]
					c.Add(k)
					c.Remove(k)
				default:
					k := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					if !c.Remove(k) {
						t.Error("Remove refused a key that is there")
					}
					store.Delete(k)
				}
			}
		})
	}
	all := func(yield func(Key) bool) {
		store.Range(func(k, _ any) bool { return yield(k.(Key)) })
	}
	for i := range 10 {
		g := Geometry{Bits: 1<<36 + uint64(i%5)*1_000_000, Hashes: 1 + i%4, Seed: uint64(i)}
		if err := c.Rebuild(g, all); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	o := &oracle{c.Geometry(), map[uint64]int{}}
	for k := range all {
		o.add(k)
	}
	got := c.Advance()
	if missing := slices.ContainsFunc(o.set(), func(p uint64) bool { return !got.contains(p) }); missing {
		t.Errorf("a key is missing after the rebuilds")
	}
	// Each writer may have been between taking a key out of the filter and out of
	// the store when the last rebuild asked the store.
	if extra := int(got.Ones()) - len(o.set()); extra > 3*c.Geometry().Hashes {
		t.Errorf("%d positions too many", extra)
	}
}
