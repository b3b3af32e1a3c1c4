package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

const (
	lookupCatalogue = 100 // objects in the catalogue for each that a cache holds
	lookupExponent  = 0.9
)

// size returns how many keys a peer's cache holds.
func (c lookupCluster) size(peer int) int {
	if c.contents != unequal {
		return c.keys
	}
	// The mean of 4^x over x from -1 to 1 is 15/(8·ln 4).
	x := 2*float64(peer%c.peers)/float64(max(1, c.peers-1)) - 1
	return max(1, int(float64(c.keys)*math.Pow(4, x)*8*math.Log(4)/15))
}

// keysOf returns a peer's keys, without duplicates. For the same job they are always the same.
func (c lookupCluster) keysOf(job *Job, peer int) []digest.Key {
	n := c.size(peer)
	keys := make([]digest.Key, 0, n)
	rng := rand.New(job.source(uint64(peer), uint64(n)))
	if c.contents == disjoint {
		for range n {
			keys = append(keys, digest.Key(rng.Uint64()))
		}
		return keys
	}
	catalogue := uint64(lookupCatalogue * c.keys)
	seen := newBitmap(catalogue)
	for len(keys) < n {
		if object := popular(rng.Float64(), float64(catalogue)); !seen.has(object) {
			seen.set(object)
			keys = append(keys, objectKey(job, object))
		}
	}
	return keys
}

// popular turns a uniform random number into the number of an object, from 0 on, by Zipf's law:
// density x^-0.9 over [1, catalogue+1), rounded down.
func popular(u, catalogue float64) uint64 {
	const rest = 1 - lookupExponent
	most := math.Pow(catalogue+1, rest)
	return min(uint64(math.Pow(1+u*(most-1), 1/rest))-1, uint64(catalogue)-1)
}

func objectKey(job *Job, object uint64) digest.Key {
	return digest.Key(mix64(mix64(job.Seed+golden64) + object*golden64))
}

func peerName(peer int) string { return fmt.Sprint("peer-", peer) }

// filterOf makes a peer's filter.
func filterOf(g digest.Geometry, keys []digest.Key) (*digest.Filter, error) {
	return digest.FilterOf(g, digest.Version{Epoch: 1, Sequence: 1}, slices.Values(keys))
}
