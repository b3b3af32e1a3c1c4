package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A burst trace is of objects for which requests come together, as those for a page that
// has just appeared. Nothing leaves a cache, so that the origin need be asked once for each.
const (
	burstCaches  = 8
	burstObjects = 20_000
	burstEach    = 20    // requests an object, on average
	burstPace    = 0.1   // seconds between two objects' first requests
	burstOrigin  = 0.2   // seconds that the origin takes
	burstSibling = 0.002 // seconds that an answer from another cache takes
	burstNews    = 0.35  // seconds until the others' digests show what a cache has stored
)

// A burstWay says what a cache does about a miss before it asks the origin.
type burstWay struct {
	name           string
	joins          bool // waits for a fetch under way in this cache
	digests, asked bool // looks into digests; asks a key's owner, which knows who fetches it
	owner          bool // has the key's owner fetch, and keeps nothing
}

var burstWays = []burstWay{
	{name: "digests, no collapse", digests: true},
	{name: "digests, collapse in the process", joins: true, digests: true},
	{name: "digests, collapse across the cluster", joins: true, digests: true, asked: true},
	{name: "one owner per key, collapse in the process (groupcache)", joins: true, asked: true, owner: true},
}

type burstRequest struct {
	time       float64
	key, cache int
}

// burstTrace has each object's requests follow its first at times that are exponential.
func burstTrace(rng *rand.Rand, objects int, spread float64) (all []burstRequest) {
	for key := range objects {
		first := (float64(key) + rng.Float64()) * burstPace
		all = append(all, burstRequest{first, key, rng.IntN(burstCaches)})
		for rng.IntN(burstEach) > 0 {
			all = append(all, burstRequest{first + spread*rng.ExpFloat64(), key, rng.IntN(burstCaches)})
		}
	}
	slices.SortFunc(all, func(a, b burstRequest) int {
		if a.time < b.time {
			return -1
		}
		return 1
	})
	return all
}

// replay counts origin fetches and messages, and adds up the seconds of waiting. has says
// from when on each cache has each key, 0 for never: fetches under way lie in the future.
func (w burstWay) replay(trace []burstRequest, objects int) (fetches, messages int, waited float64) {
	has := make([][burstCaches]float64, objects)
	for _, r := range trace {
		at, owner := &has[r.key], int(mix64(uint64(r.key))%burstCaches)
		if w.owner && r.cache != owner {
			messages += 2
			waited += burstSibling
			r.cache = owner
		}
		own := at[r.cache]
		if own > 0 && (own <= r.time || w.joins) {
			waited += max(0, own-r.time)
			continue
		}
		ready := 0.0
		for _, t := range at {
			if w.digests && t > 0 && t+burstNews <= r.time {
				ready = r.time + burstSibling
			}
		}
		if ready == 0 && w.asked && !w.owner && r.cache != owner {
			messages += 2
		}
		if ready == 0 && w.asked {
			for _, t := range at {
				if t > 0 && (ready == 0 || max(t, r.time)+burstSibling < ready) {
					ready = max(t, r.time) + burstSibling
				}
			}
		}
		if ready == 0 {
			fetches++
			ready = r.time + burstOrigin
		}
		if own == 0 || ready < own {
			at[r.cache] = ready
		}
		waited += ready - r.time
	}
	return fetches, messages, waited
}

// bursts compares the ways on requests that come closer and closer together.
func bursts(ctx context.Context, job *Job) error {
	table := job.Table(fmt.Sprintf("bursts: %d objects, some %d requests each over %d caches, an origin of %g s", burstObjects, burstEach, burstCaches, burstOrigin),
		Column{Name: "spread", Head: "after the first, mean s", Format: "%g"}, Column{Name: "way"},
		Column{Name: "fetches", Head: "origin fetches an object", Format: "%.3f"},
		Column{Name: "messages", Head: "messages/request to find out", Format: "%.3f"},
		Column{Name: "waited", Head: "mean wait, ms", Format: "%.1f"})
	for i, spread := range []float64{0.1, 1, 10} {
		trace := burstTrace(job.Rand(40+uint64(i)), burstObjects, spread)
		n := float64(len(trace))
		for _, w := range burstWays {
			if err := ctx.Err(); err != nil {
				return err
			}
			fetches, messages, waited := w.replay(trace, burstObjects)
			table.Row(spread, w.name, figures(float64(fetches)/burstObjects, 6), figures(float64(messages)/n, 6), figures(1000*waited/n, 6))
		}
	}
	table.Note("Modelled: nothing leaves a cache, an answer of a sibling takes %g ms, and what is stored shows in the others' digests %g s later. Across the cluster: a miss that no digest answers asks the key's owner, which knows who fetches it. Messages are questions to owners and their answers.", 1000*burstSibling, burstNews)
	return nil
}
