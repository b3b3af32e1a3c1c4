package digest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func newSet(t testing.TB, g Geometry, keys ...Key) *Set {
	t.Helper()
	s, err := NewSet(g, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		s.Add(k)
	}
	return s
}

// checkSet compares a set and its filter with the keys that are held, each as often as parts have it.
func checkSet(t *testing.T, s *Set, held []Key) {
	t.Helper()
	o := &oracle{s.Geometry(), map[uint64]int{}}
	for _, k := range held {
		o.add(k)
	}
	f := s.Filter().Advance()
	if !slices.Equal(f.list(), o.set()) || f.Keys() != uint64(len(held)) {
		t.Errorf("the filter has %d positions and states %d keys, want %d and %d", f.Ones(), f.Keys(), len(o.set()), len(held))
	}
	if s.Len() != len(held) || s.Filter().Len() != len(held) {
		t.Errorf("Len = %d, of the filter %d; want %d", s.Len(), s.Filter().Len(), len(held))
	}
}

// TestSetIsAMap compares a set of two parts with maps of counts: keys that are added twice, retained,
// released and replaced, and the keys around a table's edges.
func TestSetIsAMap(t *testing.T) {
	for _, g := range []Geometry{{Bits: 1 << 36, Hashes: 1}, {Bits: 60_000, Hashes: 3}} {
		rng := random(uint64(g.Hashes))
		pool := append(randomKeys(rng, 4000), 0, 1, 1<<64-1)
		s := newSet(t, g)
		sets := []*Set{s, s.Part()}
		want := []map[Key]int{{}, {}}
		for range 60_000 {
			k, i := pool[rng.IntN(len(pool))], rng.IntN(2)
			s, refs := sets[i], want[i]
			n := refs[k]
			switch rng.IntN(6) {
			case 0, 1:
				if got := s.Add(k); got != (n == 0) {
					t.Fatalf("Add(%d) = %v, held %d times", k, got, n)
				}
				refs[k] = max(1, n)
			case 2:
				s.Retain(k)
				refs[k]++
			case 3:
				if got := s.Release(k); got != (n > 0) {
					t.Fatalf("Release(%d) = %v, held %d times", k, got, n)
				}
				refs[k] = max(0, n-1)
			case 4:
				if got := s.Remove(k); got != (n > 0) {
					t.Fatalf("Remove(%d) = %v, held %d times", k, got, n)
				}
				delete(refs, k)
			case 5:
				if s.Has(k) != (n > 0) {
					t.Fatalf("Has(%d) = %v, held %d times", k, s.Has(k), n)
				}
			}
		}
		some := pool[:1000]
		sets[1].Replace(slices.Values(append(some, some[:500]...)))
		var held []Key
		for k, n := range want[0] {
			if n > 0 {
				held = append(held, k)
			}
		}
		var got []Key
		for i := range s.stripes {
			got = s.stripes[i].copyTo(got)
		}
		slices.Sort(got)
		if !slices.Equal(got, slices.Sorted(slices.Values(held))) {
			t.Errorf("the part has %d keys, want %d", len(got), len(held))
		}
		checkSet(t, s, append(held, some...))
	}
}

// TestSetRebuildsWithoutARest: rebuilt again and again, a set that is then emptied leaves no position
// set. A rebuild that counted a key as often as its position stands would leave those that keys share.
func TestSetRebuildsWithoutARest(t *testing.T) {
	g, err := GeometryFor(20_000, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	keys := randomKeys(random(3), 20_000)
	s := newSet(t, g, keys...)
	for range 5 {
		if err := s.Inside().Rebuild(g); err != nil {
			t.Fatal(err)
		}
		if n := s.Inside().Saturated(); n != 0 {
			t.Errorf("%d counters are stuck", n)
		}
		checkSet(t, s, keys)
	}
	if f := s.Filter().Current(); f.Version().Epoch != 7+5 || f.Version().Sequence != 1 {
		t.Errorf("version %v after five rebuilds", f.Version())
	}
	if err := s.Inside().Rebuild(Geometry{}); err == nil || s.Geometry() != g.normal() {
		t.Errorf("Rebuild without a geometry = %v", err)
	}
	s.Replace(slices.Values([]Key(nil)))
	checkSet(t, s, nil)
}

// A setWriter changes names of its own, and knows which are held.
type setWriter struct {
	s     *Set
	lock  *sync.RWMutex // as for Rekey
	id    int
	held  map[string]int // references
	names []string
}

func (w *setWriter) step(rng *rand.Rand) {
	name := w.names[rng.IntN(len(w.names))]
	w.lock.RLock()
	defer w.lock.RUnlock()
	k := KeyOfString(w.s.Geometry().Seed, name)
	switch rng.IntN(5) {
	case 0, 1:
		w.s.Add(k)
		w.held[name] = max(1, w.held[name])
	case 2:
		w.s.Remove(k)
		delete(w.held, name)
	case 3: // replaced by itself
		w.s.Retain(k)
		w.s.Release(k)
		if w.held[name] == 0 {
			delete(w.held, name)
		}
	case 4:
		if w.s.Has(k) != (w.held[name] > 0) || w.held[name] > 0 && !w.s.Filter().MayContain(k) {
			panic(fmt.Sprintf("%s: the set has it: %v, held %d times", name, w.s.Has(k), w.held[name]))
		}
	}
}

// TestSetUnderWriters rebuilds and rekeys a set a hundred times while writers change two parts of it and
// filters are frozen. Each time, and not only after a further rebuild, set and filter then have exactly
// the keys that are held: counts, sums and positions.
func TestSetUnderWriters(t *testing.T) {
	const writers, each = 4, 400
	s := newSet(t, Geometry{Bits: 1 << 20, Hashes: 1, Seed: 1})
	var lock sync.RWMutex
	all := make([]*setWriter, writers)
	parts := []*Set{s, s.Part()}
	for i := range all {
		w := &setWriter{s: parts[i%2], lock: &lock, id: i, held: map[string]int{}}
		for j := range each {
			w.names = append(w.names, fmt.Sprint(i, " ", j))
		}
		all[i] = w
	}
	for round := range 100 {
		var stop atomic.Bool
		var wg sync.WaitGroup
		for i, w := range all {
			wg.Go(func() {
				for rng := random(uint64(round*writers + i)); !stop.Load(); {
					w.step(rng)
				}
			})
		}
		wg.Go(func() {
			for !stop.Load() {
				s.Filter().Advance()
			}
		})
		g := Geometry{Bits: 1<<20 + uint64(round%3)*1000, Hashes: 1 + round%3, Seed: s.Geometry().Seed}
		if round%2 == 0 {
			if err := s.Inside().Rebuild(g); err != nil {
				t.Fatal(err)
			}
		} else {
			rekey(t, s, g, all, &lock)
		}
		stop.Store(true)
		wg.Wait()
		// A key that shares its positions with another is nothing to freeze: the last filter may state one fewer.
		last := KeyOfString(s.Geometry().Seed, "last")
		s.Add(last)
		s.Filter().Advance()
		s.Remove(last)
		var held []Key
		for _, w := range all {
			for name := range w.held {
				held = append(held, KeyOfString(g.Seed+uint64(round%2), name))
			}
		}
		checkSet(t, s, held)
		if t.Failed() {
			t.Fatalf("after round %d, %v", round, s.Geometry())
		}
	}
}

func rekey(t *testing.T, s *Set, g Geometry, all []*setWriter, lock *sync.RWMutex) {
	was := g.Seed
	g.Seed++
	renamed := map[Key]Key{}
	for _, w := range all {
		for _, name := range w.names {
			renamed[KeyOfString(was, name)] = KeyOfString(g.Seed, name)
		}
	}
	err := s.Inside().Rekey(g, func(yield func(Key, Key) bool) {
		for was, now := range renamed { // also of those that are not held
			if !yield(was, now) {
				return
			}
		}
	}, lock, func(k Key) Key { return renamed[k] })
	if err != nil {
		t.Fatal(err)
	}
}

// TestSetReplaceUnderWriters: keys that writers change while Replace runs are left as they are then.
func TestSetReplaceUnderWriters(t *testing.T) {
	keys := randomKeys(random(5), 6)
	stays, goes, comes, added, removed, again := keys[0], keys[1], keys[2], keys[3], keys[4], keys[5]
	s := newSet(t, Geometry{Bits: 1 << 30, Hashes: 1}, stays, goes, removed)
	s.Replace(func(yield func(Key) bool) {
		s.Add(added)
		s.Remove(removed)
		s.Add(again)
		s.Remove(again)
		_ = yield(stays) && yield(comes) && yield(removed) && yield(again)
	})
	checkSet(t, s, []Key{stays, comes, added})
}

// TestSetGrows: a planned set that is filled far beyond its plan has the planned false positives, holds
// all its keys at each moment, and takes at most 12 bytes a key beside the filter.
func TestSetGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := PlanSet(1000, 0.001, Opaque, 5, 1)
		if err != nil {
			t.Fatal(err)
		}
		keys := randomKeys(random(6), 200_000)
		for i, k := range keys {
			s.Add(k)
			if !s.Filter().MayContain(keys[i/2]) {
				t.Fatalf("key %d of %d is missing", i/2, i)
			}
		}
		synctest.Wait()
		checkSet(t, s, keys)
		if s.Inside().Outgrown() || s.Inside().Replans() < 1 || s.Inside().Planned() < 200_000 || s.Geometry().Seed != 5 {
			t.Errorf("planned for %d after %d times, geometry %+v", s.Inside().Planned(), s.Inside().Replans(), s.Geometry())
		}
		if f := s.Filter().Current(); f.FalsePositiveRate() > 0.001 {
			t.Errorf("false positives %v", f.FalsePositiveRate())
		}
		if per := float64(s.memoryBytes()) / float64(len(keys)); per > 12 {
			t.Errorf("%.1f bytes a key", per)
		}
	})
}

// TestSetBeyondAllGeometries: a set for which no geometry is large enough keeps the one that it has.
func TestSetBeyondAllGeometries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		least := 1.0
		for k := 1; k <= maxHashes; k++ {
			_, f := Geometry{Bits: maxBits, Hashes: k}.predict(12)
			least = min(least, f)
		}
		s, err := PlanSet(10, least, Opaque, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		g, keys := s.Geometry(), randomKeys(random(7), 100)
		for _, k := range keys {
			s.Add(k)
			synctest.Wait()
		}
		if s.Geometry().Bits < g.Bits || !s.Inside().Outgrown() {
			t.Errorf("%d keys are planned for, from %v to %v", s.Inside().Planned(), g, s.Geometry())
		}
		checkSet(t, s, keys)
	})
}

// TestKeyTableTurnsOver: after a hundred turnovers at each of many sizes a table has its keys and no
// others, in slots that find reaches.
func TestKeyTableTurnsOver(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 100, 1000, 3333} {
		rng := random(uint64(n))
		table := keyTable{salt: newSalt()}
		fresh := func() Key { return Key(rng.Uint64() >> stripeBits * inverse(table.salt)) } // of the first stripe
		held := make([]Key, n)
		for i := range held {
			held[i] = fresh()
			table.add(held[i])
		}
		for range 100 * n {
			i := rng.IntN(n)
			if !table.remove(held[i]) || table.has(held[i]) {
				t.Fatalf("%d keys: remove", n)
			}
			held[i] = fresh()
			if !table.add(held[i]) {
				t.Fatalf("%d keys: add", n)
			}
		}
		for _, k := range held {
			if !table.has(k) || table.add(k) {
				t.Fatalf("%d keys: one is lost", n)
			}
		}
		if got := slices.Sorted(table.all); !slices.Equal(got, slices.Sorted(slices.Values(held))) {
			t.Errorf("%d keys: %d are left", n, len(got))
		}
		if n >= 1000 && len(table.slots) > 2*n {
			t.Errorf("%d keys have %d slots", n, len(table.slots))
		}
	}
}

// TestCrowded: keys that are small numbers are reported, and those made of them are none.
func TestCrowded(t *testing.T) {
	g, _ := GeometryFor(20_000, 0.001)
	bad, good, few := counting(t, g), counting(t, g), counting(t, g, 1, 2, 3)
	for i := range uint64(20_000) {
		bad.Add(Key(8_000_000 + i))
		good.Add(KeyOfUint64(3, 8_000_000+i))
	}
	bad.Advance()
	if within(bad).Crowded() == nil {
		t.Error("20,000 keys on one position are no error")
	}
	for _, c := range []*CountingFilter{good, few, counting(t, g), counting(t, Geometry{Bits: 64, Hashes: 3}, randomKeys(random(1), 500)...)} {
		c.Advance()
		if err := within(c).Crowded(); err != nil {
			t.Errorf("Crowded = %v", err)
		}
	}
	if f := good.Current().FalsePositiveRate(); f > 0.00105 {
		t.Errorf("false positives %v", f)
	}
	if KeyOfUint64(1, 7) == KeyOfUint64(2, 7) || KeyOfUint64(0, 7) == 7 {
		t.Error("KeyOfUint64 ignores the seed, or does nothing")
	}
}

func BenchmarkSet(b *testing.B) {
	g := Geometry{Bits: 1 << 30, Hashes: 1}
	s := newSet(b, g)
	keys := randomKeys(random(1), 1<<20)
	for _, k := range keys {
		s.Add(k)
	}
	rng := random(2)
	for b.Loop() {
		i := rng.IntN(len(keys))
		s.Remove(keys[i])
		keys[i] = Key(rng.Uint64())
		s.Add(keys[i])
	}
	b.ReportMetric(float64(s.memoryBytes())/float64(s.Len()), "B/key")
}

// TestSetReplan: a set gets the geometry for other plans, smaller ones as well, has its keys in it, and never one that its keys
// outgrow at once.
func TestSetReplan(t *testing.T) {
	s, err := PlanSet(100_000, 0.001, Opaque, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	keys := randomKeys(random(8), 1000)
	for _, k := range keys {
		s.Add(k)
	}
	for _, c := range []struct {
		keys    uint64
		rate    float64
		planned uint64
	}{{5000, 0.01, 5000}, {200_000, 0.01, 200_000}, {10, 0.001, 2000}} {
		epoch := s.Filter().Current().Version().Epoch
		if err := s.Inside().Replan(c.keys, c.rate); err != nil {
			t.Fatal(err)
		}
		want, _ := GeometryFor(c.planned, c.rate)
		want.Profile, want.Seed = Opaque, 5
		if s.Geometry() != want || s.Inside().Planned() != c.planned || s.Filter().Current().Version().Epoch == epoch {
			t.Errorf("Replan(%d, %v): planned for %d, %v, want %v", c.keys, c.rate, s.Inside().Planned(), s.Geometry(), want)
		}
		checkSet(t, s, keys)
	}
	was := s.Geometry()
	if err := s.Inside().Replan(1<<62, 1e-9); err == nil || s.Geometry() != was || s.Inside().Planned() != 2000 {
		t.Errorf("a plan that no geometry has: %v", err)
	}
}
