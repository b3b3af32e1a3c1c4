package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// A world is a number of caches, an index of their filters and a loop over them.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	index  *Index
	loop   loop
	caches map[string]*cacheModel
	later  []Change     // of the loop, and not yet of the index
	common []digest.Key // what many caches hold
	seen   []digest.Key // keys that some cache holds or held
	choose func(*rand.Rand) digest.Geometry
}

type cacheModel struct {
	filter *digest.CountingFilter
	keys   []digest.Key
}

func newWorld(t *testing.T, seed uint64, choose func(*rand.Rand) digest.Geometry) *world {
	w := &world{
		t: t, rng: random(seed), index: New(), loop: loop{}, caches: map[string]*cacheModel{}, choose: choose,
	}
	w.index.table.maxLines = 8
	w.index.table.fewCodes = 64
	w.common = randomKeys(w.rng, 20)
	return w
}

// churn adds and removes some keys of a cache.
func (w *world) churn(c *cacheModel, n int) {
	for range n {
		if len(c.keys) > 0 && w.rng.IntN(5) < 2 {
			i := w.rng.IntN(len(c.keys))
			c.filter.Remove(c.keys[i])
			c.keys = slices.Delete(c.keys, i, i+1)
			continue
		}
		k := digest.Key(w.rng.Uint64())
		if w.rng.IntN(2) == 0 {
			k = w.common[w.rng.IntN(len(w.common))]
		}
		c.filter.Add(k)
		c.keys = append(c.keys, k)
		w.seen = append(w.seen, k)
	}
}

// step does one random thing to the index.
func (w *world) step() {
	name := fmt.Sprint("peer", w.rng.IntN(40))
	c := w.caches[name]
	switch what := w.rng.IntN(20); {
	case c == nil || what == 0: // a new life
		c = &cacheModel{filter: counting(w.t, w.choose(w.rng))}
		w.caches[name] = c
		w.churn(c, w.rng.IntN(300))
		w.set(name, c.filter.Advance())
	case what == 1:
		w.flush()
		w.index.Delete(name)
		delete(w.loop, name)
		delete(w.caches, name)
	case what == 2: // comes whole
		w.churn(c, w.rng.IntN(50))
		w.set(name, c.filter.Advance())
	case what == 3: // an update is lost
		w.churn(c, 5)
		c.filter.Advance()
	default:
		w.churn(c, w.rng.IntN(60))
		next, d := c.filter.AdvanceDelta()
		w.change(Change{name, d, next})
	}
}

func (w *world) set(name string, f *digest.Filter) {
	w.change(Change{Peer: name, Next: f})
}

// change changes a peer, now or together with the next changes.
func (w *world) change(c Change) {
	w.loop[c.Peer] = c.Next
	if w.later = append(w.later, c); w.rng.IntN(3) > 0 {
		w.flush()
	}
}

func (w *world) flush() {
	if err := w.index.Apply(w.later...); err != nil {
		w.t.Errorf("Apply = %v", err)
	}
	w.later = w.later[:0]
}

// key returns one that many, some or no caches hold.
func (w *world) key() digest.Key {
	switch w.rng.IntN(3) {
	case 0:
		return w.common[w.rng.IntN(len(w.common))]
	case 1:
		if len(w.seen) > 0 {
			return w.seen[w.rng.IntN(len(w.seen))]
		}
	}
	return digest.Key(w.rng.Uint64())
}

func (w *world) check() {
	w.t.Helper()
	if len(w.later) > 0 {
		return
	}
	var keys []digest.Key
	for range 10 {
		k := w.key()
		keys = append(keys, k)
		if got, want := namesOf(w.index.Lookup(nil, k)), w.loop.lookup(k); !slices.Equal(got, want) {
			w.t.Fatalf("Lookup(%x) = %v, want %v", uint64(k), got, want)
		}
	}
	w.checkSeveral(keys[:w.rng.IntN(len(keys))])
}

// mixes are the kinds of geometries in a cluster.
var mixes = map[string]func(*rand.Rand) digest.Geometry{
	"sparse": func(*rand.Rand) digest.Geometry { return digest.Geometry{Bits: 1 << 20, Hashes: 1} },
	"sizes": func(r *rand.Rand) digest.Geometry {
		return digest.Geometry{Bits: 1<<(10+r.IntN(31)) - r.Uint64N(1<<10), Hashes: 1}
	},
	"few sizes": func(r *rand.Rand) digest.Geometry { return digest.Geometry{Bits: 1 << (16 + r.IntN(4)), Hashes: 1} },
	"hashes": func(r *rand.Rand) digest.Geometry {
		return digest.Geometry{Bits: 1 << (16 + r.IntN(20)), Hashes: 1 + r.IntN(4)}
	},
	"dense": func(r *rand.Rand) digest.Geometry { return digest.Geometry{Bits: 1000, Hashes: 4} },
	"all": func(r *rand.Rand) digest.Geometry {
		if r.IntN(2) == 0 {
			return geometries[r.IntN(len(geometries))]
		}
		return digest.Geometry{Bits: 1 + r.Uint64N(1<<(1+r.IntN(39))), Hashes: 1 + r.IntN(3)}
	},
}

// TestAgainstLoop does random things and compares with the plain loop.
func TestAgainstLoop(t *testing.T) {
	for name, mix := range mixes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1, mix)
			for i := range 600 {
				w.step()
				w.check()
				if i%20 == 0 {
					w.flush()
					audit(t, w.index, w.loop)
				}
			}
			w.flush()
			audit(t, w.index, w.loop)
		})
	}
}
