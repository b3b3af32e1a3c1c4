package systems

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/sim/lab"
)

var neighboursExperiment = lab.Experiment{
	Name:    "neighbours",
	Summary: "what snapshots save if they are coded given the digests of other peers that the receiver has",
	Seconds: 12,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n, f := lab.KeysFlag(flags, 10_000), lab.RatesFlag(flags, 1e-3, 1e-4)
		return func(ctx context.Context, job *lab.Job) error {
			return lab.ForEach(*n, func(n int) error { return neighboursOf(ctx, job, n, *f) })
		}
	},
}

func neighboursOf(ctx context.Context, job *lab.Job, n int, rates []float64) error {
	number := func(name, head, format string, loose float64) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: loose}
	}
	table := job.Table(fmt.Sprintf("snapshots of caches of %d keys, drawn from one catalogue of %d by Zipf's law, one hash, bits a key", n, lookupCatalogue*n),
		number("f", "", "%g", 0), number("peers", "", "%d", 0),
		number("plain", "", "%.2f", lab.Exact), number("one", "given one other", "%.2f", lab.Exact),
		number("all", "given those fetched before, mean", "%.2f", lab.Exact), number("saved", "saved, %", "%.1f", lab.Exact),
		number("last", "the last", "%.2f", lab.Exact))
	sizes := []int{8, 40, 100}
	cluster := lookupCluster{peers: sizes[len(sizes)-1], keys: n, contents: zipf}
	for i, f := range rates {
		g := sparse(n, f)
		counts := map[uint64]int{} // how many of the peers before have each position
		var plain, given, one float64
		for p := range cluster.peers {
			if err := ctx.Err(); err != nil {
				return err
			}
			if job.Short && (i > 0 || p >= sizes[0]) {
				if slices.Contains(sizes, p+1) {
					table.Skip(f, p+1)
				}
				continue
			}
			job.Progress(i*cluster.peers+p, len(rates)*cluster.peers, "f = %g, peer %d", f, p)
			filter, err := lab.FilterOf(g, cluster.keysOf(job, p))
			if err != nil {
				return err
			}
			own := slices.Collect(filter.Positions())
			plain += float64(codedGiven(g.Bits, own, nil))
			last := float64(codedGiven(g.Bits, own, counts))
			if given += last; p == 1 {
				one = last
			}
			for _, at := range own {
				counts[at]++
			}
			if done := float64(p + 1); slices.Contains(sizes, p+1) {
				perKey := 8 / float64(n)
				table.Row(f, p+1, perKey*plain/done, perKey*one, perKey*given/done, 100*(1-given/plain), perKey*last)
			}
		}
	}
	table.Note("Positions are in classes by how many of the peers before have them, and each class is coded by package arith.")
	return nil
}

// codedGiven is the length of a set of positions, coded for a receiver that knows how many others have
// each: within classes of positions by the binary digits of that.
func codedGiven(m uint64, own []uint64, counts map[uint64]int) (length int) {
	known := slices.Sorted(maps.Keys(counts))
	var of [16]uint64 // positions of each class
	var ranks [16][]uint64
	of[0] = m - uint64(len(known))
	at := 0
	for _, p := range append(slices.Clone(own), m) {
		for ; at < len(known) && known[at] < p; at++ {
			of[bits.Len(uint(counts[known[at]]))]++
		}
		class := bits.Len(uint(counts[p]))
		rank := p - uint64(at)
		if class > 0 {
			rank = of[class]
		}
		if p < m {
			ranks[class] = append(ranks[class], rank)
		}
	}
	for class, set := range ranks {
		if of[class] > 0 {
			code := arith.AppendSet(nil, arith.Choose(of[class], uint64(len(set))), of[class], set)
			length += len(code) + 4 // and how many there are, and the code's length
		}
	}
	return length
}
