package systems

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/sim/lab"
)

var lookupExperiment = lab.Experiment{
	Name:    "lookup",
	Summary: "which of many peers has a key: times and memory of the index, beside loops over filters",
	Seconds: -1,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		peers := lab.ListFlag(flags, "peers", "`LIST` of numbers of peers, for each of --keys; without it those of RESULTS.md, which need 1 GB", 1, 60_000, []int(nil))
		keys := lab.ListFlag(flags, "keys", "`LIST` of numbers of keys that each peer holds", 100, 100_000_000, []int{10_000, 100_000})
		how := flags.String("contents", string(zipf), "`KIND` of the peers' contents: zipf, objects of one catalogue by popularity; sizes, likewise, in caches of a quarter to four times the mean, no two equal; or disjoint (default zipf)")
		return func(ctx context.Context, job *lab.Job) error {
			clusters, err := lookupClusters(*peers, *keys, contents(*how))
			if err != nil {
				return err
			}
			return runLookup(ctx, job, clusters)
		}
	},
}

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
		return nil, lab.Usagef("--contents %s: want zipf, sizes or disjoint", how)
	}
	for _, k := range keys {
		for _, p := range peers {
			if p*k > 1_000_000_000 {
				return nil, lab.Usagef("%d peers with %d keys each: want at most 1000000000 in all", p, k)
			}
			all = append(all, lookupCluster{p, k, how, p*k <= rivalKeys})
		}
	}
	return lab.Or(all, []lookupCluster{
		{10, 10_000, zipf, true}, {64, 10_000, zipf, true}, {100, 10_000, zipf, true}, {1000, 10_000, zipf, true}, {4000, 10_000, zipf, false},
		{1000, 10_000, unequal, false}, {1000, 10_000, disjoint, false},
		{10, 100_000, zipf, true}, {64, 100_000, zipf, false}, {100, 100_000, zipf, false}, {1000, 100_000, zipf, false},
	}), nil
}

func runLookup(ctx context.Context, job *lab.Job, clusters []lookupCluster) error {
	time := func(name, head, format string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: lab.AnyValue}
	}
	table := job.Table(fmt.Sprintf("lookups at %g false candidates each", candidatesPerLookup),
		lab.Column{Name: "peers"},
		lab.Column{Name: "keys", Head: "keys each"},
		lab.Column{Name: "contents"},
		lab.Column{Name: "way"},
		lab.Column{Name: "bytes_per_key", Head: "bytes/key", Format: "%.2f", Loose: 0.1},
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

// A lookupWay counts the peers that may hold a key: with an index, or by a lookup in one filter
// after the other.
type lookupWay struct {
	name     string
	geometry func(keys int, rate float64) digest.Geometry
	index    *index.Index // nil for the loop
	filters  []*digest.Filter
	matches  []index.Match
}

// lookupWays returns the index, and then the ways with which it is compared.
func lookupWays() []*lookupWay {
	return []*lookupWay{
		{name: "index", geometry: sparse, index: index.New()},
		{name: "loop, sorted sets", geometry: sparse},
		{name: "loop, bitmaps", geometry: denseFor},
	}
}

func (w *lookupWay) add(peer int, f *digest.Filter) error {
	if w.index != nil {
		return w.index.Set(peerName(peer), f)
	}
	w.filters = append(w.filters, f)
	return nil
}

func (w *lookupWay) lookup(k digest.Key) (n int) {
	if w.index != nil {
		w.matches = w.index.Lookup(w.matches[:0], k)
		return len(w.matches)
	}
	for _, f := range w.filters {
		if f.MayContain(k) {
			n++
		}
	}
	return n
}

func (w *lookupWay) bytes() (n int) {
	if w.index != nil {
		return w.index.MemoryBytes()
	}
	for _, f := range w.filters {
		n += f.MemoryBytes()
	}
	return n
}

// A lookupRun measures one cluster.
type lookupRun struct {
	job     *lab.Job
	cluster lookupCluster
	rate    float64      // of false positives, of each filter
	held    int          // keys of all caches together
	sample  []digest.Key // some of them
	one     []digest.Key // of the sample, found at one peer
	many    []digest.Key // found at a quarter of the peers or more
}

const (
	lookupRounds = 5
	lookupKeys   = 1 << 16
	// shortLookupKeys is the largest total number of keys in a short run.
	shortLookupKeys = 100_000
)

func (r *lookupRun) measure(ctx context.Context, table *lab.Table) error {
	c := r.cluster
	for i, w := range lookupWays() {
		if i > 0 && !c.rivals {
			break
		}
		if r.job.Short && c.peers*c.keys > shortLookupKeys {
			table.Skip(c.peers, c.keys, string(c.contents), w.name)
			continue
		}
		if err := r.fill(ctx, w); err != nil {
			return err
		}
		if i == 0 {
			r.chooseKeys(w)
		}
		lookups := lookupKeys
		if w.index == nil {
			lookups = max(64, 1<<18/c.peers)
		}
		r.row(table, w, lookups)
	}
	return nil
}

// fill makes the filters of all caches, on all cores, and adds them to a way.
func (r *lookupRun) fill(ctx context.Context, w *lookupWay) error {
	filters := make([]*digest.Filter, r.cluster.peers)
	samples := make([][]digest.Key, r.cluster.peers)
	err := r.job.Each(ctx, r.cluster.peers, w.name+": filters made", func(peer int) (err error) {
		keys := r.cluster.keysOf(r.job, peer)
		rng := r.job.Source(2, uint64(peer))
		for range 1 + 1<<19/r.cluster.peers {
			samples[peer] = append(samples[peer], keys[lab.Below(rng, uint64(len(keys)))])
		}
		filters[peer], err = lab.FilterOf(w.geometry(len(keys), r.rate), keys)
		return err
	})
	if err != nil {
		return err
	}
	r.held, r.sample = 0, slices.Concat(samples...)
	for peer, f := range filters {
		r.job.Progress(peer, len(filters), "%s: %d of %d filters added", w.name, peer, len(filters))
		if err := w.add(peer, f); err != nil {
			return err
		}
		r.held += r.cluster.size(peer)
	}
	return ctx.Err()
}

// chooseKeys finds keys to look up.
func (r *lookupRun) chooseKeys(w *lookupWay) {
	rng := r.job.Rand(3)
	rng.Shuffle(len(r.sample), func(i, j int) { r.sample[i], r.sample[j] = r.sample[j], r.sample[i] })
	for _, k := range r.sample {
		switch n := w.lookup(k); {
		case n == 1:
			r.one = append(r.one, k)
		case n >= max(2, r.cluster.peers/4):
			r.many = append(r.many, k)
		}
	}
}

// row measures lookups of so many keys of each kind.
func (r *lookupRun) row(table *lab.Table, w *lookupWay, n int) {
	rng := r.job.Rand(4)
	var none []digest.Key
	for range n * lookupRounds {
		none = append(none, digest.Key(rng.Uint64()))
	}
	nones, _ := r.times(w, none, n)
	ones, _ := r.times(w, r.one, n)
	manys, matches := r.times(w, r.many, min(n, 4096))
	var cold any
	if w.index != nil {
		cold = r.cold(w)
	}
	c := r.cluster
	table.Row(c.peers, c.keys, string(c.contents), w.name, float64(w.bytes())/float64(r.held), nones, ones, manys, matches, cold)
}

// times looks up at most n of the keys in each round. It returns the median time of a lookup in
// nanoseconds and the mean number of matches, or nil if there are no keys.
func (r *lookupRun) times(w *lookupWay, keys []digest.Key, n int) (ns, matches any) {
	n = min(n, len(keys)/lookupRounds)
	if n == 0 {
		return nil, nil
	}
	var rounds []float64
	found := 0
	for round := range lookupRounds {
		var times []float64
		// A batch is shorter than the time for which the system lets other processes run.
		for batch := range slices.Chunk(keys[round*n:][:n], max(1, n/256)) {
			times = append(times, passed(len(batch), func() {
				for _, k := range batch {
					found += w.lookup(k)
				}
			}))
		}
		rounds = append(rounds, lab.Median(times))
	}
	return lab.Median(rounds), float64(found) / float64(n*lookupRounds)
}

// passed is the time in ns that has passed during work, for each of n: processor time is too coarse
// for a batch.
func passed(n int, work func()) float64 {
	begin := time.Now()
	work()
	return float64(time.Since(begin).Nanoseconds()) / float64(n)
}

// cold measures lookups whose data is not in the processor's caches.
func (r *lookupRun) cold(w *lookupWay) float64 {
	wash := make([]uint64, 8<<20)
	rng := r.job.Rand(5)
	var times, empty []float64
	for range 40 {
		for i := 0; i < len(wash); i += 8 {
			wash[i]++
		}
		k := digest.Key(rng.Uint64())
		times = append(times, passed(1, func() { w.lookup(k) }))
		empty = append(empty, passed(1, func() {}))
	}
	return lab.Median(times) - lab.Median(empty)
}

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
func (c lookupCluster) keysOf(job *lab.Job, peer int) []digest.Key {
	n := c.size(peer)
	keys := make([]digest.Key, 0, n)
	rng := rand.New(job.Source(uint64(peer), uint64(n)))
	if c.contents == disjoint {
		for range n {
			keys = append(keys, digest.Key(rng.Uint64()))
		}
		return keys
	}
	catalogue := uint64(lookupCatalogue * c.keys)
	seen := lab.NewBitmap(catalogue)
	for len(keys) < n {
		if object := popular(rng.Float64(), float64(catalogue)); !seen.Has(object) {
			seen.Set(object)
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

func objectKey(job *lab.Job, object uint64) digest.Key {
	return digest.Key(lab.Mix64(lab.Mix64(job.Seed+lab.Golden64) + object*lab.Golden64))
}

func peerName(peer int) string { return fmt.Sprint("peer-", peer) }
