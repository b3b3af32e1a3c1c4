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
	Summary: "which of many peers has it: times and memory of the index, beside loops over filters",
	Flags: func(flags *flag.FlagSet) any {
		o := new(lookupOptions)
		list := func(name string, to *[]int, least, most float64) {
			flags.Func(name, "", func(text string) error {
				return parseList(text, to, func(s string) (int, error) {
					return parseWhole(s, least, most, fmt.Sprintf("%.0f to %.0f", least, most))
				})
			})
		}
		list("peers", &o.peers, 1, 60_000)
		list("keys", &o.keys, 100, 100_000_000)
		flags.StringVar(&o.contents, "contents", string(zipf), "")
		flags.BoolVar(&o.more, "more", false, "")
		return o
	},
	Help: `flags of lookup:
  --peers LIST    as in 10,1000: how many peers there are, for each of --keys LIST (default
                  10000,100000); without --peers, 10 to 1000 peers with 10,000 keys each and
                  10 to 100 with 100,000
  --contents HOW  what they hold: zipf, of one catalogue by popularity (the default); sizes,
                  likewise, but from a quarter to four times the mean, no two equal; or
                  disjoint
  --more          4000 peers with 10,000 keys each and 1000 with 100,000 as well, as in
                  RESULTS.md: some minutes, 1 GB
`,
	Run: runLookup,
})

type lookupOptions struct {
	peers, keys []int
	contents    string
	more        bool
}

// candidatesPerLookup is how many false ones all peers together may cause.
const candidatesPerLookup = 0.1

// A lookupCluster is what is looked things up in.
type lookupCluster struct {
	peers, keys int
	contents    contents
	rivals      bool // measure other ways beside the index
}

// contents says how the caches resemble each other.
type contents string

const (
	zipf     contents = "zipf"
	unequal  contents = "sizes"
	disjoint contents = "disjoint"
)

// rivalKeys is up to how many keys in all other ways are measured beside the index.
const rivalKeys = 10_000_000

func (o lookupOptions) clusters() ([]lookupCluster, error) {
	how := contents(o.contents)
	if !slices.Contains([]contents{zipf, unequal, disjoint}, how) {
		return nil, usagef("--contents %s: want zipf, sizes or disjoint", o.contents)
	}
	var all []lookupCluster
	add := func(peers, keys, most int) {
		all = append(all, lookupCluster{peers, keys, how, peers*keys <= most})
	}
	if o.peers != nil {
		for _, k := range or(o.keys, []int{10_000, 100_000}) {
			for _, p := range o.peers {
				if p*k > 1_000_000_000 {
					return nil, usagef("%d peers with %d keys each: want at most 1000000000 in all", p, k)
				}
				add(p, k, rivalKeys)
			}
		}
		return all, nil
	}
	if o.keys != nil || how != zipf {
		return nil, usagef("--keys and --contents want --peers")
	}
	for _, peers := range []int{10, 64, 100, 1000} {
		add(peers, 10_000, rivalKeys)
	}
	if o.more {
		add(4000, 10_000, rivalKeys)
	}
	all = append(all, lookupCluster{1000, 10_000, unequal, false}, lookupCluster{1000, 10_000, disjoint, false})
	for _, peers := range []int{10, 64, 100} {
		add(peers, 100_000, rivalKeys/10)
	}
	if o.more {
		add(1000, 100_000, rivalKeys)
	}
	return all, nil
}

func runLookup(ctx context.Context, job *Job) error {
	o, _ := job.options.(*lookupOptions)
	if o == nil {
		o = &lookupOptions{contents: string(zipf), more: true}
	}
	clusters, err := o.clusters()
	if err != nil {
		return err
	}
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
	updates := job.Table("updates of the index",
		Column{Name: "peers"},
		Column{Name: "keys", Head: "keys each"},
		Column{Name: "contents"},
		time("apply_ns", "apply ns/flip", "%.0f"),
		time("load_ms", "load ms", "%.1f"),
		time("load_ns", "load ns/key", "%.0f"),
		time("lookups_per_s", "lookups/s", "%.3g"),
		time("flips_per_s", "at flips/s", "%.3g"))
	for _, c := range clusters {
		if err := newLookupRun(ctx, job, table, updates, c).measure(); err != nil {
			return err
		}
	}
	table.Note("Index: package index, of filters with one hash and m = n/f. Rows: the same index of standard Bloom filters, which it keeps bit by bit beside each other. Postings: a hash table from position to peer.")
	table.Note("Loop: each peer's filter is asked in turn; nothing is sorted or copied out. In many: keys that a quarter of the peers or more have.")
	table.Note("Cold: nothing of it is in the processor's caches, and the key in none. Times are medians and depend on the machine.")
	updates.Note("Apply: deltas of 1 %% replaced keys. Load: one more peer. Lookups/s: on all cores, key in none, while every peer's digest changes by 1 %% a minute.")
	return severalKeys(ctx, job)
}

// sparse is the geometry of one hash for n keys at a rate of f.
func sparse(n int, f float64) digest.Geometry {
	return digest.Geometry{Bits: uint64(math.Ceil(-1 / math.Expm1(math.Log1p(-f)/float64(n)))), Hashes: 1}
}

// denseFor is the geometry of least memory.
func denseFor(n int, f float64) digest.Geometry {
	k := max(1, math.Round(-math.Log2(f)))
	bits := -k * float64(n) / math.Log1p(-math.Pow(f, 1/k))
	return digest.Geometry{Bits: uint64(math.Ceil(bits)), Hashes: int(k)}
}
