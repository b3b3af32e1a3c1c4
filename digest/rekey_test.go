package digest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestRekeyUnderWrites changes the seed again and again while writers add, remove and replace
// objects. No held object is ever missing, and in the end the filter has the objects' keys
// under the last seed.
func TestRekeyUnderWrites(t *testing.T) {
	var lock sync.RWMutex
	var store sync.Map // name -> struct{}
	c := counting(t, Geometry{Bits: 1 << 36, Hashes: 1, Seed: 1})
	do := func(f func(Key) bool, name string) bool {
		lock.RLock()
		defer lock.RUnlock()
		return f(KeyOfString(c.Geometry().Seed, name))
	}
	add := func(k Key) bool { c.Add(k); return true }
	// Renaming a key needs its object's name: these are the names of all objects.
	name := func(w, i int) string { return fmt.Sprintf("%d/%d", w, i) }
	const writers, each = 3, 3000
	for w := range writers {
		for i := range each / 2 {
			do(add, name(w, i))
			store.Store(name(w, i), nil)
		}
	}
	var wg sync.WaitGroup
	var stop atomic.Bool
	for w := range writers {
		wg.Go(func() {
			r := random(uint64(100 + w))
			held := make([]bool, each)
			for i := range each / 2 {
				held[i] = true
			}
			for !stop.Load() {
				i := r.IntN(each)
				switch n := name(w, i); {
				case !held[i]:
					store.Store(n, nil)
					do(add, n)
					held[i] = true
				case !do(c.MayContain, n):
					t.Errorf("%s is held but not found", n)
					return
				case i%2 == 0: // an object replaced by itself
					do(add, n)
					do(c.Remove, n)
				default:
					if !do(c.Remove, n) {
						t.Error("Remove refused a key that is there")
					}
					store.Delete(n)
					held[i] = false
				}
			}
		})
	}
	for seed := uint64(2); seed < 7; seed++ {
		was := c.Geometry()
		g := Geometry{Bits: 1<<36 + seed%3*1_000_000, Hashes: 1 + int(seed)%3, Seed: seed}
		renamed := make(map[Key]Key)
		for w := range writers {
			for i := range each {
				renamed[KeyOfString(was.Seed, name(w, i))] = KeyOfString(seed, name(w, i))
			}
		}
		keys := func(yield func(Key, Key) bool) {
			store.Range(func(n, _ any) bool {
				return yield(KeyOfString(was.Seed, n.(string)), KeyOfString(seed, n.(string)))
			})
		}
		if err := c.Rekey(g, keys, &lock, func(k Key) Key { return renamed[k] }); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	o := &oracle{c.Geometry(), map[uint64]int{}}
	store.Range(func(n, _ any) bool { o.add(KeyOfString(6, n.(string))); return true })
	got := c.Advance()
	if missing := slices.ContainsFunc(o.set(), func(p uint64) bool { return !got.contains(p) }); missing {
		t.Error("a key is missing after the changes")
	}
	if extra := int(got.Ones()) - len(o.set()); extra > writers*2*c.Geometry().Hashes {
		t.Errorf("%d positions too many", extra)
	}
	if err := c.Rekey(Geometry{}, nil, &lock, nil); err == nil || c.Current() != got {
		t.Errorf("Rekey without a geometry = %v", err)
	}
}
