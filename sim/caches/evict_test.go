package caches

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestLRU(t *testing.T) {
	c := newLRU(40, false)
	var log []string
	put := func(key uint32, size int64) bool {
		return c.put(object{key, size}, false, func(k uint32) { log = append(log, "+"+string(rune('a'+k))) }, func(k uint32) { log = append(log, "-"+string(rune('a'+k))) })
	}
	for key := range uint32(4) {
		put(key, 10)
	}
	c.get(0)
	put(4, 10)      // evicts b
	put(0, 6)       // shrinks
	put(5, 4)       // fits
	if put(6, 11) { // larger than a quarter of the cache
		t.Error("an object longer than a quarter of the cache was stored")
	}
	c.peek(2)
	put(7, 1) // evicts c, although it was peeked at
	if got := strings.Join(log, " "); got != "+a +b +c +d +e -b +f +h -c" {
		t.Errorf("changes: %s", got)
	}
	if c.weight() != 31 || len(c.at) != 5 || c.order.Len() != 5 {
		t.Errorf("weight %d, %d objects", c.weight(), len(c.at))
	}
}

// Large objects are refused, unless they are kept in slices.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		size, limit int64
		sliced      bool
		want        bool
	}{
		{25, 100, false, true}, {26, 100, false, false}, {26, 100, true, false}, {8 << 20, 10 << 20, false, false},
		{8 << 20, 10 << 20, true, true}, {8<<20 - 1, 10 << 20, true, false}, {11 << 20, 10 << 20, true, false},
	} {
		for name, cache := range map[string]copies{"lru": newLRU(c.limit, c.sliced), "few copies": newFewCopies(newLRU(c.limit, c.sliced), c.limit, c.sliced)} {
			if got := cache.put(object{1, c.size}, false, func(uint32) {}, func(uint32) {}); got != c.want || cache.len() == 1 != c.want {
				t.Errorf("%s of %d, sliced %v: put(%d) = %v, want %v", name, c.limit, c.sliced, c.size, got, c.want)
			}
		}
	}
}

// TestEvictions sends random requests to caches of both kinds. The additions and removals
// that they report must agree with their contents, which must fit. If copies leave first,
// nothing else leaves while they take more than their share.
func TestEvictions(t *testing.T) {
	for name, make := range map[string]func(limit int64) copies{
		"lru":             func(limit int64) copies { return newLRU(limit, false) },
		"lru, few copies": func(limit int64) copies { return newFewCopies(newLRU(limit, false), limit, false) },
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 1000
			c := make(limit)
			few, _ := c.(*fewCopies)
			spared, copies := 0, map[uint32]bool{}
			held := map[uint32]int64{}
			rng := rand.New(rand.NewPCG(1, 2))
			steps := 20_000
			if testing.Short() {
				steps = 2_000
			}
			for range steps {
				key := uint32(float64(300) * rng.Float64() * rng.Float64())
				if o, ok := c.get(key); ok != (held[key] != 0) || ok && o.size != held[key] {
					t.Fatalf("get(%d) = %v, %v, but %d was reported", key, o, ok, held[key])
				} else if ok && rng.IntN(10) > 0 {
					continue
				}
				size := 1 + rng.Int64N(40)
				if rng.IntN(100) == 0 {
					size = limit + 1
				}
				copied := rng.IntN(2) == 0
				stored := c.put(object{key, size}, copied, func(key uint32) {
					if held[key] != 0 {
						t.Fatalf("%d came twice", key)
					}
				}, func(gone uint32) {
					if few != nil && gone != key && !copies[gone] {
						spared++
						if share := int64(limit / 32); few.taken > share {
							t.Fatalf("%d left, and copies take %d of %d bytes", gone, few.taken, share)
						}
					}
					delete(held, gone)
				})
				if stored != (size <= limit/largestShare) {
					t.Fatalf("put of %d bytes = %v", size, stored)
				}
				if _, kept := c.peek(key); kept && stored {
					held[key], copies[key] = size, copied
				}
				sum := int64(0)
				for _, size := range held {
					sum += size
				}
				if c.len() != len(held) || sum > limit || c.weight() != sum {
					t.Fatalf("%d objects of %d bytes, but %d of %d by the reported changes", c.len(), c.weight(), len(held), sum)
				}
			}
			if few != nil && spared == 0 {
				t.Error("nothing but copies left")
			}
		})
	}
}
