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

// TestRebuildBetweenStoreAndFilter: a writer is between the filter and the store when a rebuild
// begins, and again when it ends. It leaves two keys in the filter that are not in the store:
// no more, and only until the next rebuild. No key is lost.
func TestRebuildBetweenStoreAndFilter(t *testing.T) {
	keys := randomKeys(random(8), 3)
	taken, brought, stays := keys[0], keys[1], keys[2]
	g := Geometry{Bits: 1 << 36, Hashes: 2}
	c := counting(t, g, taken, stays)
	c.Remove(taken) // the store still has it
	err := c.Rebuild(g, func(yield func(Key) bool) {
		// The writer goes on and adds another key to the store, which is yielded as well.
		_ = yield(taken) && yield(brought) && yield(stays)
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Add(brought)
	c.Remove(brought)
	for _, k := range keys {
		if !c.MayContain(k) {
			t.Errorf("the filter denies %d", k)
		}
	}
	if n := c.Advance().Ones(); n != 3*2 {
		t.Errorf("%d positions are set, want 6", n)
	}
	if err := c.Rebuild(g, slices.Values([]Key{stays})); err != nil || c.Advance().Ones() != 2 || !c.MayContain(stays) {
		t.Errorf("after another rebuild %d positions are set, want 2; %v", c.Current().Ones(), err)
	}
}

// TestRebuildNotesBeforeItAsks: changes are recorded from the moment that keys is called, so
// keys can wait for writers that were under way before.
func TestRebuildNotesBeforeItAsks(t *testing.T) {
	keys := randomKeys(random(9), 3)
	waitedFor, later, goes := keys[0], keys[1], keys[2]
	for _, g := range []Geometry{{Bits: 1 << 36, Hashes: 2}, {Bits: 1 << 24, Hashes: 1}, {Bits: 1 << 16, Hashes: 3}} {
		c := counting(t, g, waitedFor, goes)
		err := c.Rebuild(g, func(yield func(Key) bool) {
			c.Add(later)
			c.Remove(goes)
			yield(waitedFor)
		})
		if err != nil || !c.MayContain(waitedFor) || !c.MayContain(later) || c.MayContain(goes) || c.Len() != 2 {
			t.Errorf("%v: a key is missing, or one too many; %v", g, err)
		}
	}
}

// TestRebuildUnderWrites changes the geometry again and again while writers add, remove and
// replace keys. Afterwards no key is missing, and there are few extra positions.
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
	// Each writer may have been between the filter and the store when the last rebuild
	// began, and when it ended: see TestRebuildBetweenStoreAndFilter.
	if extra := int(got.Ones()) - len(o.set()); extra > 3*2*c.Geometry().Hashes {
		t.Errorf("%d positions too many", extra)
	}
}
