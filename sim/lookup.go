package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

var _ = experiments.add(Experiment{
	Name:    "lookup",
	Summary: "which of many peers has a key: times and memory of the index, beside loops over filters",
	Seconds: -1,
	Flags: func(flags *flag.FlagSet) runner {
		peers := listFlag(flags, "peers", "`LIST` of numbers of peers, for each of --keys; without it those of RESULTS.md, which need 1 GB", 1, 60_000, []int(nil))
		keys := listFlag(flags, "keys", "`LIST` of numbers of keys that each peer holds", 100, 100_000_000, []int{10_000, 100_000})
		how := flags.String("contents", string(zipf), "`KIND` of the peers' contents: zipf, objects of one catalogue by popularity; sizes, likewise, in caches of a quarter to four times the mean, no two equal; or disjoint (default zipf)")
		return func(ctx context.Context, job *Job) error {
			clusters, err := lookupClusters(*peers, *keys, contents(*how))
			if err != nil {
				return err
			}
			return runLookup(ctx, job, clusters)
		}
	},
})

// candidatesPerLookup is how many false candidates a lookup has on average, of all peers.
const candidatesPerLookup = 0.1

// A lookupCluster is a cluster of peers whose digests are in one index.
type lookupCluster struct {
	peers, keys int
	contents    contents
	rivals      bool // also measure other ways than the index
}

// contents says how the caches resemble each other.
type contents string

const (
	zipf     contents = "zipf"
	unequal  contents = "sizes"
	disjoint contents = "disjoint"
)

// rivalKeys is the largest total number of keys for which other ways are measured, too.
const rivalKeys = 10_000_000

// lookupClusters returns the clusters of RESULTS.md, or the user's.
func lookupClusters(peers, keys []int, how contents) (all []lookupCluster, err error) {
	if !slices.Contains([]contents{zipf, unequal, disjoint}, how) {
		return nil, usagef("--contents %s: want zipf, sizes or disjoint", how)
	}
	for _, k := range keys {
		for _, p := range peers {
			if p*k > 1_000_000_000 {
				return nil, usagef("%d peers with %d keys each: want at most 1000000000 in all", p, k)
			}
			all = append(all, lookupCluster{p, k, how, p*k <= rivalKeys})
		}
	}
	return or(all, []lookupCluster{
		{10, 10_000, zipf, true}, {64, 10_000, zipf, true}, {100, 10_000, zipf, true}, {1000, 10_000, zipf, true}, {4000, 10_000, zipf, false},
		{1000, 10_000, unequal, false}, {1000, 10_000, disjoint, false},
		{10, 100_000, zipf, true}, {64, 100_000, zipf, false}, {100, 100_000, zipf, false}, {1000, 100_000, zipf, false},
	}), nil
}

func runLookup(ctx context.Context, job *Job, clusters []lookupCluster) error {
	time := func(name, head, format string) Column {
		return Column{Name: name, Head: head, Format: format, Loose: AnyValue}
	}
	table := job.Table(fmt.Sprintf("lookups at %g false candidates each", candidatesPerLookup),
		Column{Name: "peers"},
		Column{Name: "keys", Head: "keys each"},
		Column{Name: "contents"},
		Column{Name: "way"},
		Column{Name: "bytes_per_key", Head: "bytes/key", Format: "%.2f", Loose: 0.1},
		time("none_ns", "in none ns", "%.0f"),
		time("one_ns", "in one ns", "%.0f"),
		time("many_ns", "in many ns", "%.0f"),
		time("many", "(matches)", "%.0f"),
		time("cold_ns", "cold ns", "%.0f"))
	for _, c := range clusters {
		r := lookupRun{job: job, cluster: c, rate: candidatesPerLookup / float64(c.peers)}
		if err := r.measure(ctx, table); err != nil {
			return err
		}
	}
	table.Note("Index: package index, of filters with one hash and m = n/f. Rows: the same index of standard Bloom filters, which it keeps bit by bit beside each other.")
	table.Note("Loop: a lookup in each peer's filter in turn, without sorting or copying the results. In many: keys that a quarter of the peers or more have.")
	table.Note("Cold: nothing is in the processor's caches, and no peer has the key. Times are medians and depend on the machine.")
	return nil
}

// sparse is the geometry of one hash for n keys at a rate of f.
func sparse(n int, f float64) digest.Geometry {
	return digest.Geometry{Bits: uint64(math.Ceil(-1 / math.Expm1(math.Log1p(-f)/float64(n)))), Hashes: 1}
}

// denseFor is the geometry of least memory for n keys at a rate of f.
func denseFor(n int, f float64) digest.Geometry {
	k := max(1, math.Round(-math.Log2(f)))
	bits := -k * float64(n) / math.Log1p(-math.Pow(f, 1/k))
	return digest.Geometry{Bits: uint64(math.Ceil(bits)), Hashes: int(k)}
}
