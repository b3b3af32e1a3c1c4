package digest

import (
	"flag"
	"fmt"
	"math/bits"
	"testing"
	"time"
)

// filledTo returns a frozen filter of n keys at f = 10⁻³, or with four hashes in 8 bits a key, whose
// counters are arrays.
func filledTo(tb testing.TB, n uint64, arrays bool) *CountingFilter {
	g, err := GeometryFor(n, 1e-3)
	if err != nil {
		tb.Fatal(err)
	}
	if arrays {
		g = Geometry{Bits: 8 * n, Hashes: 4}
	}
	c, err := NewCountingFilter(g, 1)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		c.Add(Key(mix(i)))
	}
	c.Advance()
	return c
}

// replaceSome replaces the keys [from, from+some) of n by others.
func replaceSome(c *CountingFilter, n, from, some uint64) {
	for i := from; i < from+some; i++ {
		c.Remove(Key(mix(i)))
		c.Add(Key(mix(n + i)))
	}
}

var long = flag.Bool("long", false, "count lines at 3·10⁷ keys as well, in 2 GiB")

// TestFreezeReadsWhatChanged counts the lines that a freeze reads after some keys were replaced: at
// most one for each position that changed, in tables and arrays, however large the filter is.
// With -long: 332 of 2,191,204 lines for 166 of 3·10⁷ keys, and 922,940 for 600,000.
func TestFreezeReadsWhatChanged(t *testing.T) {
	sizes := []uint64{1000, 100_000, 10_000_000}
	switch {
	case testing.Short() || raceEnabled:
		sizes = sizes[:2]
	case *long:
		sizes = append(sizes, 30_000_000)
	}
	for _, n := range sizes {
		freezeReads(t, n, false)
	}
	freezeReads(t, 1000, true)
	freezeReads(t, 100_000, true)
}

func freezeReads(t *testing.T, n uint64, arrays bool) {
	c := filledTo(t, n, arrays)
	from := uint64(0)
	for _, some := range []uint64{1, 166, n / 50} {
		replaceSome(c, n, from, some)
		from += some
		read, lines, changes := 0, 0, 0
		counters := c.counters.Load()
		for i := range counters.shards {
			s := &counters.shards[i]
			if s.isArray != arrays {
				t.Fatalf("%d keys: shard %d is an array: %v", n, i, s.isArray)
			}
			var marked []int
			for at := range s.marked {
				marked = append(marked, at)
			}
			for _, at := range marked { // again, for the freeze
				s.mark(at)
			}
			read += len(marked)
			lines += s.len()
			changes += int(s.differing)
		}
		t.Logf("%d keys, %d replaced: %d of %d lines are read for %d changes", n, some, read, lines, changes)
		if most := 2 * int(some) * counters.geometry.Hashes; read > most || read == 0 {
			t.Errorf("%d keys, %d replaced: %d lines are read, want at most %d", n, some, read, most)
		}
		if _, d := c.AdvanceDelta(); d.Len() != changes {
			t.Errorf("%d keys, %d replaced: a delta of %d changes, want %d", n, some, d.Len(), changes)
		}
	}
}

// BenchmarkFreezeFew freezes filters of several sizes after 166 keys were replaced.
func BenchmarkFreezeFew(b *testing.B) {
	for _, n := range []uint64{1e5, 1e6, 1e7, 3e7} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			const some = 166
			c := filledTo(b, n, false)
			b.ReportAllocs()
			from := uint64(0)
			for b.Loop() {
				b.StopTimer()
				replaceSome(c, n, from, some)
				from += some
				b.StartTimer()
				c.AdvanceDelta()
			}
		})
	}
}

// A freeze locks the shards that were written since the last one, and no others; the keys are counted all the same.
func TestFreezeLocksWhatWasWritten(t *testing.T) {
	for _, hashes := range []int{1, 3} {
		g := Geometry{Bits: 1 << 30, Hashes: hashes}
		c := counting(t, g)
		keys := randomKeys(random(1), 5000)
		for _, k := range keys {
			c.Add(k)
		}
		if f := c.Advance(); f.Keys() != 5000 || c.Changed() != 0 {
			t.Fatalf("%v: %d keys and %d changes left, want 5000 and 0", g, f.Keys(), c.Changed())
		}
		counters := c.counters.Load()
		writes := map[string]func(){
			"nothing":                   func() {},
			"what is not there":         func() { c.Remove(randomKeys(random(2), 1)[0]) },
			"a key":                     func() { c.Add(keys[0]) },
			"a key twice, once removed": func() { c.Add(keys[1]); c.Add(keys[1]); c.Remove(keys[1]) },
			"a new key that goes":       func() { k := randomKeys(random(3), 1)[0]; c.Add(k); c.Remove(k) },
		}
		for what, write := range writes {
			before := c.Len()
			write()
			most := 2 * hashes
			written := 0
			for i := range counters.written {
				written += bits.OnesCount64(counters.written[i].Load())
			}
			if written > most || written == 0 && c.Len() != before {
				t.Errorf("%v, %s: %d shards are to be locked, want at most %d", g, what, written, most)
			}
			var others []*shard // a freeze that locks one of these does not return
			for i := range counters.shards {
				if counters.written[i>>6].Load()>>(i&63)&1 == 0 {
					others = append(others, &counters.shards[i])
					counters.shards[i].mu.Lock()
				}
			}
			frozen := make(chan *Filter, 1)
			go func() { frozen <- c.Advance() }()
			var f *Filter
			select {
			case f = <-frozen:
			case <-time.After(time.Minute):
				t.Fatalf("%v, %s: the freeze waits for a shard that was not written", g, what)
			}
			for _, s := range others {
				s.mu.Unlock()
			}
			if !f.MayContain(keys[0]) || c.Changed() != 0 {
				t.Errorf("%v, %s: %d changes are left", g, what, c.Changed())
			}
		}
		k := randomKeys(random(4), 1)[0] // a freeze says how many keys there are if it changes anything
		c.Add(k)
		if f := c.Advance(); int(f.Keys()) != c.Len() {
			t.Errorf("%v: a filter of %d keys, want %d", g, f.Keys(), c.Len())
		}
	}
}

// BenchmarkFreezeNothing freezes filters of several sizes that nobody has written since.
func BenchmarkFreezeNothing(b *testing.B) {
	for _, n := range []uint64{1e4, 1e5, 1e6} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			c := filledTo(b, n, false)
			c.Advance()
			b.ReportAllocs()
			for b.Loop() {
				c.AdvanceDelta()
			}
		})
	}
}
