package main

import (
	"math/rand/v2"

	"github.com/summarycache/summarycache/digest"
)

func randomKeys(rng rand.Source, n int) []digest.Key {
	keys := make([]digest.Key, n)
	for i := range keys {
		keys[i] = digest.Key(rng.Uint64())
	}
	return keys
}

// filled returns a publisher of n random keys, the keys, and the filter that it published.
func filled(g digest.Geometry, rng rand.Source, n int) (held *digest.CountingFilter, keys []digest.Key, base *digest.Filter, err error) {
	if held, err = digest.NewCountingFilter(g, 1); err != nil {
		return nil, nil, nil, err
	}
	keys = randomKeys(rng, n)
	for _, k := range keys {
		held.Add(k)
	}
	return held, keys, held.Advance(), nil
}

// replaceKeys replaces each key by a random one.
func replaceKeys(held *digest.CountingFilter, rng rand.Source, keys []digest.Key) {
	for i, k := range keys {
		held.Remove(k)
		keys[i] = digest.Key(rng.Uint64())
		held.Add(keys[i])
	}
}
