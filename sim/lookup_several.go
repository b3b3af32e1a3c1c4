package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

// A lookupChain is what a question is about: keys of which some peers hold the
// first few.
const lookupChain = 64

// severalKeys compares questions about many keys with as many lookups.
func severalKeys(ctx context.Context, job *Job) error {
	const peers = 64
	keys, chains := 100_000, 1000
	if job.Short {
		keys, chains = 2000, 20
	}
	table := job.Table(fmt.Sprintf("one question about a chain of %d keys, over %d peers with %d keys each", lookupChain, peers, keys),
		Column{Name: "holders"},
		Column{Name: "question"},
		Column{Name: "us", Head: "µs", Format: "%.1f", Loose: AnyValue},
		Column{Name: "separate_us", Head: "µs by lookups", Format: "%.1f", Loose: AnyValue},
		Column{Name: "answers", Head: "answers", Format: "%.1f", Loose: AnyValue})
	table.Note("Holders: how many peers on average hold the beginning, of any length, of a chain. By lookups: as many separate lookups as there are keys, without putting their answers together.")
	for i, holders := range []int{1, 4, 16} {
		if err := ctx.Err(); err != nil {
			return err
		}
		rng := job.Rand(20 + uint64(i))
		x, asked, err := chainedIndex(rng, peers, keys, chains, holders)
		if err != nil {
			return err
		}
		askSeveral(job, table, x, asked, holders)
	}
	return nil
}

// chainedIndex makes an index of peers, each of which holds the beginnings of some
// chains beside keys of its own, and returns it with the chains.
func chainedIndex(rng *rand.Rand, peers, keys, chains, holders int) (*index.Index, [][]digest.Key, error) {
	x := index.New()
	asked := make([][]digest.Key, chains)
	for i := range asked {
		for range lookupChain {
			asked[i] = append(asked[i], digest.Key(rng.Uint64()))
		}
	}
	g := sparse(keys, candidatesPerLookup/float64(peers))
	for peer := range peers {
		var held []digest.Key
		for _, chain := range asked {
			if rng.IntN(peers) < holders {
				held = append(held, chain[:1+rng.IntN(lookupChain)]...)
			}
		}
		for len(held) < keys {
			held = append(held, digest.Key(rng.Uint64()))
		}
		f, err := filterOf(g, held)
		if err != nil {
			return nil, nil, err
		}
		if err := x.Set(peerName(peer), f); err != nil {
			return nil, nil, err
		}
	}
	return x, asked, nil
}

func askSeveral(job *Job, table *Table, x *index.Index, chains [][]digest.Key, holders int) {
	var matches []index.Match
	var counts []index.Prefix
	separate := perChain(chains, func(chain []digest.Key) int {
		for _, k := range chain {
			matches = x.Lookup(matches[:0], k)
		}
		return 0
	})
	for _, q := range []struct {
		name string
		ask  func(chain []digest.Key) int
	}{
		{"all of", func(c []digest.Key) int { matches = x.AllOf(matches[:0], c); return len(matches) }},
		{"any of", func(c []digest.Key) int { matches = x.AnyOf(matches[:0], c); return len(matches) }},
		{"longest prefix", func(c []digest.Key) int { counts = x.Prefixes(counts[:0], c); return len(counts) }},
	} {
		answers := 0
		for _, chain := range chains {
			answers += q.ask(chain)
		}
		table.Row(holders, q.name, perChain(chains, q.ask), separate, float64(answers)/float64(len(chains)))
	}
}

// perChain returns the median time for a chain, in microseconds.
func perChain(chains [][]digest.Key, ask func([]digest.Key) int) float64 {
	var times []float64
	for range 7 {
		times = append(times, nanoseconds(len(chains), func() {
			for _, chain := range chains {
				ask(chain)
			}
		})/1000)
	}
	return median(times)
}
