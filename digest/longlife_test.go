package digest

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
)

var turnovers = flag.Int("turnovers", 0, "how often TestLongLife replaces all keys, in filters of every size and in every way; a million keys a tenth as often; 0 means some of them, a few times")

// TestLongLife replaces all keys of a filter again and again, and checks it at the end: each
// held key is found, nothing is left of the others, false positives are as many as planned, and
// memory is as after the first turnover. A release runs it with -turnovers 100, in parts by
// -run if necessary: an hour of one core, most of it for freezing at every tenth change.
func TestLongLife(t *testing.T) {
	ways := []string{"fifo", "lru", "random"}
	freezes := []int{10, 100, 1_000, 0}
	if *turnovers == 0 {
		if testing.Short() {
			t.Skip("adds and removes in one goroutine")
		}
		for i, n := range []int{100, 1_000, 10_000, 32_768} {
			for j, way := range ways {
				freeze, salt := freezes[(i+j+1)%len(freezes)], (j+2)%3
				times := max(3, min(30, 200_000/n))
				runLife(t, fmt.Sprintf("n=%d", n), oneHash(t, n), n, way, freeze, salt, times)
			}
		}
		for i, g := range severalHashes {
			runLife(t, g.String(), g, manyKeys, ways[i], freezes[i], 0, 3)
		}
		return
	}
	for _, n := range []int{100, 1_000, 10_000, 20_000, 26_000, 32_000, 32_768, 50_000, 100_000, 1_000_000} {
		times := *turnovers
		if n == 1_000_000 {
			times = max(2, times/10)
		}
		for _, way := range ways {
			for _, freeze := range freezes {
				for salt := range 3 {
					runLife(t, fmt.Sprintf("n=%d", n), oneHash(t, n), n, way, freeze, salt, times)
				}
			}
		}
	}
	for _, g := range severalHashes {
		for _, way := range ways {
			for _, freeze := range freezes {
				runLife(t, g.String(), g, manyKeys, way, freeze, 0, *turnovers)
			}
		}
	}
}

func oneHash(t *testing.T, n int) Geometry {
	t.Helper()
	g, err := GeometryFor(uint64(n), 0.001)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// severalHashes are for manyKeys. The shards of the first become arrays of counters, like those
// of the geometry that peer plan chooses for little memory. Those of the last stay tables.
var severalHashes = []Geometry{
	{Bits: 14 * manyKeys, Hashes: 2}, {Bits: 10 * manyKeys, Hashes: 6}, {Bits: 1 << 29, Hashes: 3},
}

const manyKeys = 20_000

// runLife replaces n keys so many times, and freezes the filter after each freeze changes, or
// never if that is 0. The salt is fixed; otherwise the filter draws it at random.
func runLife(t *testing.T, name string, g Geometry, n int, way string, freeze, salt, times int) {
	t.Run(fmt.Sprintf("%s/%s/freeze=%d/salt=%d", name, way, freeze, salt), func(t *testing.T) {
		c := counting(t, g)
		all := c.counters.Load()
		all.salt = uint32(mix(uint64(salt)+1)) | 1
		all.unsalt = uint32(inverse(uint64(all.salt)))
		r := random(uint64(n)<<8 | uint64(salt))
		life := newLife(way, randomKeys(r, n), r.Uint64())
		for _, k := range life.keys {
			c.Add(k)
		}
		if freeze > 0 {
			c.Advance()
		}
		first := max(n, 2*freeze) // changes, after which its memory should not grow
		memory := 0
		for i := 1; i <= max(2*first, times*n); i++ {
			if !life.replace(c) {
				t.Fatalf("after %d replacements a key that is held was denied", i)
			}
			if freeze > 0 && i%freeze == 0 {
				c.AdvanceDelta()
			}
			if i == first {
				memory = c.memoryBytes()
			}
		}
		if got := c.memoryBytes(); float64(got) > mostGrowth*float64(memory) {
			t.Errorf("%d bytes after the first turnover became %d", memory, got)
		}
		for i := range all.shards {
			checkTable(t, all, &all.shards[i])
		}
		checkLife(t, c, life.keys, r.Uint64())
	})
}

// mostGrowth: in a hundred turnovers, by chance, a shard gets fuller than in one. Then its
// table grows once more, by a quarter. That is 4 to 6 % of the memory if shards have a hundred
// keys or more, and up to a quarter if they have fewer.
const mostGrowth = 1.25

// checkLife compares a filter with the held keys.
func checkLife(t *testing.T, c *CountingFilter, held []Key, seed uint64) {
	t.Helper()
	want := &oracle{c.Geometry(), map[uint64]int{}}
	for _, k := range held {
		want.add(k)
	}
	f := c.Advance()
	if !slices.Equal(f.list(), want.set()) || f.Keys() != uint64(len(held)) || c.Len() != len(held) {
		t.Errorf("the filter has %d keys and states %d, and %d are held, or they are other keys", c.Len(), f.Keys(), len(held))
	}
	for _, k := range held {
		if !c.MayContain(k) || !f.MayContain(k) {
			t.Fatal("a key that is held was denied")
		}
	}
	const trials = 200_000
	r, hits := random(seed), 0.0
	for range trials {
		if f.MayContain(Key(r.Uint64())) {
			hits++
		}
	}
	fill, p := f.Geometry().predict(uint64(len(held)))
	spread := math.Sqrt(fill*(1-fill)/float64(f.Geometry().Bits)) * float64(f.Geometry().Hashes) * p / fill
	sd := math.Hypot(math.Sqrt(trials*p*(1-p)), trials*spread)
	if off := (hits - trials*p) / sd; math.Abs(off) > 4 {
		t.Errorf("%.0f false positives of %d, %.1f standard deviations from the planned %.6f", hits, trials, off, p)
	}
}

// A cacheLife is a cache that changes its filter.
type cacheLife struct {
	keys   []Key // held
	at     int   // the next to be removed, or to be examined
	seed   uint64
	choose func(l *cacheLife) Key // moves at to the key to be removed, and returns the new one

	// For lru, with four times as many objects as held keys:
	object []int32 // of each of keys
	place  []int32 // index in keys of each object, plus one, or zero
	asked  []bool  // requested since it was last examined, for each of keys
}

func newLife(way string, keys []Key, seed uint64) *cacheLife {
	l := &cacheLife{keys: keys, seed: seed}
	switch way {
	case "fifo":
		l.choose = (*cacheLife).fifo
	case "random":
		l.choose = (*cacheLife).random
	default:
		l.choose = (*cacheLife).lru
		l.object, l.place, l.asked = make([]int32, len(keys)), make([]int32, 4*len(keys)), make([]bool, len(keys))
		for i := range keys {
			l.object[i], l.place[i] = int32(i), int32(i)+1
			keys[i] = l.keyOf(i)
		}
	}
	return l
}

// replace returns false if the removal of a held key was refused.
func (l *cacheLife) replace(c *CountingFilter) bool {
	fresh := l.choose(l)
	c.Add(fresh) // before the removal, like caches that make room on demand
	old := l.keys[l.at]
	l.keys[l.at] = fresh
	l.at = (l.at + 1) % len(l.keys)
	return c.Remove(old)
}

func (l *cacheLife) draw() uint64 {
	l.seed += golden
	return mix(l.seed)
}

func (l *cacheLife) fifo() Key { return Key(l.draw()) }

func (l *cacheLife) random() Key {
	l.at = int(l.draw() % uint64(len(l.keys)))
	return Key(l.draw())
}

// lru requests objects, some of which are far more popular than others, until one is not held.
// It removes the next key that was not requested since the last turn.
func (l *cacheLife) lru() Key {
	object := 0
	for {
		u := float64(l.draw()>>11) / (1 << 53)
		object = int(u * u * float64(len(l.place)))
		if l.place[object] == 0 {
			break
		}
		l.asked[l.place[object]-1] = true
	}
	for l.asked[l.at] {
		l.asked[l.at] = false
		l.at = (l.at + 1) % len(l.keys)
	}
	l.place[l.object[l.at]], l.place[object] = 0, int32(l.at)+1
	l.object[l.at] = int32(object)
	return l.keyOf(object)
}

func (l *cacheLife) keyOf(object int) Key { return Key(mix(uint64(object)*golden + 1)) }
