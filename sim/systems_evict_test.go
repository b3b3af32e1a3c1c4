package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestLRU(t *testing.T) {
	c := newLRU(10)
	var log []string
	put := func(key uint32, size int64) bool {
		return c.put(object{key, size}, func(k uint32) { log = append(log, "+"+string(rune('a'+k))) }, func(k uint32) { log = append(log, "-"+string(rune('a'+k))) })
	}
	put(0, 4)
	put(1, 4)
	c.get(0)
	put(2, 4)       // drives out b
	put(0, 2)       // shrinks
	put(3, 4)       // fits
	if put(4, 11) { // is larger than the cache
		t.Error("an object larger than the cache was stored")
	}
	c.peek(2)
	put(5, 1) // drives out c, which peeking does not save
	if got := strings.Join(log, " "); got != "+a +b +c -b +d +f -c" {
		t.Errorf("changes: %s", got)
	}
	if c.weight != 7 || len(c.at) != 3 || c.order.Len() != 3 {
		t.Errorf("weight %d, %d objects", c.weight, len(c.at))
	}
}

// TestEvictions plays random requests on caches of every rule: what they tell of
// comings and leavings is what they hold, and it fits.
func TestEvictions(t *testing.T) {
	for name, make := range evictions {
		t.Run(name, func(t *testing.T) {
			const limit = 1000
			c := make(limit)
			held := map[uint32]int64{}
			rng := rand.New(rand.NewPCG(1, 2))
			steps := 20_000
			if testing.Short() {
				steps = 2_000
			}
			for range steps {
				key := uint32(float64(300) * rng.Float64() * rng.Float64())
				if o, ok := c.get(key); ok != (held[key] != 0) || ok && o.size != held[key] {
					t.Fatalf("get(%d) = %v, %v, having been told of %d", key, o, ok, held[key])
				} else if ok && rng.IntN(10) > 0 {
					continue
				}
				size := 1 + rng.Int64N(40)
				if rng.IntN(100) == 0 {
					size = limit + 1
				}
				stored := c.put(object{key, size}, func(key uint32) {
					if held[key] != 0 {
						t.Fatalf("%d came twice", key)
					}
				}, func(gone uint32) {
					if gone == key {
						size = 0
					}
					delete(held, gone)
				})
				if stored != (size <= limit) {
					t.Fatalf("put of %d bytes = %v", size, stored)
				}
				if stored && size > 0 {
					held[key] = size
				}
				sum := int64(0)
				for _, size := range held {
					sum += size
				}
				if c.len() != len(held) || sum > limit {
					t.Fatalf("%d objects, told of %d of %d bytes", c.len(), len(held), sum)
				}
			}
		})
	}
}

// TestSystemsEvictByOtter replays a trace on caches that are not LRU.
func TestSystemsEvictByOtter(t *testing.T) {
	job := testJob(1)
	s := synthetic{requests: 20_000, objects: 2000, zipf: 0.8, overlap: 0.8, churn: 0.5}
	if testing.Short() {
		s.requests, s.objects = 4_000, 400
	}
	job.options = &systemsOptions{caches: 4, capacity: 0.1, evict: "otter", invent: true, synthetic: s}
	if err := runSystems(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	table := job.tables[0]
	if !strings.Contains(strings.Join(table.Notes, " "), "otter") {
		t.Errorf("the table does not say how objects leave: %q", table.Notes)
	}
	for _, row := range table.Rows {
		if total := row[3].(float64); total < 20 || total > 95 {
			t.Errorf("%s: %v %% hits", row[0], total)
		}
	}
}
