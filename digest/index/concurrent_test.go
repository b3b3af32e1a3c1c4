package index

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestNeverMisses looks up keys that one peer holds all the time and keys that no peer ever held,
// while everything else changes: this peer and others are set and updated by deltas, are deleted,
// change their geometry, and share lines.
func TestNeverMisses(t *testing.T) {
	for name, mix := range mixes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 7, mix)
			kept := randomKeys(w.rng, 50)
			steady := &cacheModel{filter: counting(t, mix(w.rng), kept...)}
			w.caches["steady"] = steady
			w.set("steady", steady.filter.Advance())
			w.flush()

			var done atomic.Bool
			var wg sync.WaitGroup
			for i := range 2 {
				wg.Go(func() {
					var matches []Match
					var counts []Prefix
					rng := random(uint64(100 + i))
					for !done.Load() {
						k := kept[rng.IntN(len(kept))]
						matches = w.index.Lookup(matches[:0], k)
						if !slices.ContainsFunc(matches, func(m Match) bool { return m.Peer == "steady" }) {
							t.Errorf("Lookup(%x) = %v, which lacks steady", uint64(k), matches)
							return
						}
						counts = w.index.Prefixes(counts[:0], kept)
						if !slices.ContainsFunc(counts, func(c Prefix) bool { return c.Peer == "steady" && c.Keys == len(kept) }) {
							t.Errorf("Prefixes = %v, which lacks steady", counts)
							return
						}
						for _, m := range w.index.Lookup(matches[:0], digest.Key(rng.Uint64())) {
							if m.Peer == "" {
								t.Errorf("Lookup = %v", m)
							}
						}
					}
				})
			}
			for i := 0; i < 300 && !t.Failed(); i++ {
				w.step()
				switch i % 4 {
				case 0: // changed in place
					for _, k := range randomKeys(w.rng, 20) {
						steady.filter.Add(k)
					}
					next, d := steady.filter.AdvanceDelta()
					w.change(Change{"steady", d, next})
				case 1: // anew
					steady = &cacheModel{filter: counting(t, mix(w.rng), kept...)}
					w.set("steady", steady.filter.Advance())
				}
			}
			w.flush()
			done.Store(true)
			wg.Wait()
			w.caches["steady"] = steady
			audit(t, w.index, w.loop)
		})
	}
}

// TestWriters has several concurrent writers, and checks the state at the end.
func TestWriters(t *testing.T) {
	x := New()
	want := make([]loop, 4)
	var wg sync.WaitGroup
	for i := range want {
		want[i] = loop{}
		wg.Go(func() {
			rng := random(uint64(i))
			for range 100 {
				name := fmt.Sprintf("%d/%d", i, rng.IntN(10))
				if rng.IntN(4) == 0 {
					x.Delete(name)
					delete(want[i], name)
					continue
				}
				f := counting(t, mixes["all"](rng), randomKeys(rng, 40)...).Advance()
				if err := x.Set(name, f); err != nil {
					t.Errorf("Set = %v", err)
				}
				want[i][name] = f
			}
		})
	}
	wg.Wait()
	all := loop{}
	for _, l := range want {
		maps.Copy(all, l)
	}
	audit(t, x, all)
}

// TestEmptied looks keys up while the last peer, and with it the whole table, is deleted and set again.
func TestEmptied(t *testing.T) {
	x := New()
	g := digest.Geometry{Bits: 1 << 20, Hashes: 1}
	keys := randomKeys(random(1), 50)
	f := counting(t, g, keys...).Advance()
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		var matches []Match
		for i := 0; !done.Load(); i++ {
			if matches = x.Lookup(matches[:0], keys[i%len(keys)]); len(matches) > 1 {
				t.Errorf("Lookup = %v", matches)
				return
			}
		}
	})
	for range 3000 {
		if err := x.Set("a", f); err != nil {
			t.Error(err)
		}
		x.Delete("a")
	}
	done.Store(true)
	wg.Wait()
	audit(t, x, loop{})
}
