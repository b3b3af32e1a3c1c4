package main

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/summarycache/summarycache/arith"
)

var _ = experiments.add(Experiment{
	Name:    "neighbours",
	Summary: "what snapshots would save if they were coded given the digests of other peers that the receiver has",
	Takes:   "n f",
	Run:     runNeighbours,
})

func runNeighbours(ctx context.Context, job *Job) error {
	return forEach(ctx, job, job.own.n, []int{10_000}, neighboursOf)
}

func neighboursOf(ctx context.Context, job *Job, n int) error {
	table := job.Table(fmt.Sprintf("snapshots of caches of %d keys, drawn from one catalogue of %d by Zipf's law, one hash, bits a key", n, lookupCatalogue*n),
		Column{Name: "f", Format: "%g"},
		Column{Name: "peers"},
		Column{Name: "plain", Format: "%.2f", Loose: exact},
		Column{Name: "one", Head: "given one other", Format: "%.2f", Loose: exact},
		Column{Name: "all", Head: "given those fetched before, mean", Format: "%.2f", Loose: exact},
		Column{Name: "saved", Head: "saved, %", Format: "%.1f", Loose: exact},
		Column{Name: "last", Head: "the last", Format: "%.2f", Loose: exact},
		Column{Name: "plain_ms", Head: "plain, ms to write and read", Format: "%.1f", Loose: AnyValue},
		Column{Name: "all_ms", Head: "the last, ms", Format: "%.0f", Loose: AnyValue})
	sizes := []int{8, 40, 100}
	cluster := lookupCluster{peers: sizes[len(sizes)-1], keys: n, contents: zipf}
	var seen []uint64
	for i, f := range or(job.own.f, []float64{1e-3, 1e-4}) {
		if job.Short && i > 0 {
			for _, peers := range sizes {
				table.skip(f, peers)
			}
			continue
		}
		g := sparse(n, f)
		counts := map[uint64]int{} // how many of the peers before have each position
		var plain, given, one float64
		var plainTime time.Duration
		for p := range cluster.peers {
			if err := ctx.Err(); err != nil {
				return err
			}
			if job.Short && p >= sizes[0] {
				if slices.Contains(sizes, p+1) {
					table.skip(f, p+1)
				}
				continue
			}
			job.Progress(i*cluster.peers+p, 2*cluster.peers, "f = %g, peer %d", f, p)
			filter, err := filterOf(g, cluster.keysOf(job, p, &seen))
			if err != nil {
				return err
			}
			own := slices.Collect(filter.Positions())
			begin := time.Now()
			size, err := codedGiven(g.Bits, own, nil)
			if err != nil {
				return err
			}
			plainTime += time.Since(begin)
			plain += float64(size)
			begin = time.Now()
			last, err := codedGiven(g.Bits, own, counts)
			if err != nil {
				return err
			}
			took := time.Since(begin)
			if given += float64(last); p == 1 {
				one = float64(last)
			}
			for _, at := range own {
				counts[at]++
			}
			if done := float64(p + 1); slices.Contains(sizes, p+1) {
				perKey := 8 / float64(n)
				table.Row(f, p+1, perKey*plain/done, perKey*one, perKey*given/done, 100*(1-given/plain), perKey*float64(last),
					plainTime.Seconds()*1000/done, took.Seconds()*1000)
			}
		}
	}
	table.Note("Positions are put into classes by how many of the peers before have them, and each class coded by package arith; all is decoded again. Times depend on the machine; those of classes count the peers' positions anew.")
	return nil
}

// codedGiven is the length of a set of positions, coded for who knows how many others have
// each: within classes of positions by the binary digits of that. It is decoded again.
func codedGiven(m uint64, own []uint64, counts map[uint64]int) (length int, err error) {
	known := make([]uint64, 0, len(counts))
	for p := range counts {
		known = append(known, p)
	}
	slices.Sort(known)
	var of [16]uint64 // positions of each class
	var ranks [16][]uint64
	of[0] = m - uint64(len(known))
	at := 0
	for _, p := range own {
		for ; at < len(known) && known[at] < p; at++ {
			of[bits.Len(uint(counts[known[at]]))]++
		}
		class, rank := 0, p-uint64(at)
		if at < len(known) && known[at] == p {
			class = bits.Len(uint(counts[p]))
			rank = of[class]
		}
		ranks[class] = append(ranks[class], rank)
	}
	for ; at < len(known); at++ {
		of[bits.Len(uint(counts[known[at]]))]++
	}
	for class, set := range ranks {
		if of[class] == 0 {
			continue
		}
		x := uint64(len(set))
		method := arith.Choose(of[class], x)
		code := arith.AppendSet(nil, method, of[class], set)
		back, err := arith.DecodeSet(nil, method, code, of[class], x)
		if err != nil || !slices.Equal(back, set) {
			return 0, fmt.Errorf("class %d: another set: %w", class, err)
		}
		length += len(code) + 4 // and how many there are, and the code's length
	}
	return length, nil
}
