package main

import (
	"context"
	"slices"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

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
		{name: "index, rows", geometry: denseFor, index: index.New()},
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
	job     *Job
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

func (r *lookupRun) measure(ctx context.Context, table *Table) error {
	c := r.cluster
	for i, w := range lookupWays() {
		if i > 0 && !c.rivals {
			break
		}
		if r.job.Short && c.peers*c.keys > shortLookupKeys {
			table.skip(c.peers, c.keys, string(c.contents), w.name)
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
	err := r.job.each(ctx, r.cluster.peers, w.name+": filters made", func(peer int) (err error) {
		keys := r.cluster.keysOf(r.job, peer)
		rng := r.job.source(2, uint64(peer))
		for range 1 + 1<<19/r.cluster.peers {
			samples[peer] = append(samples[peer], keys[below(rng, uint64(len(keys)))])
		}
		filters[peer], err = filterOf(w.geometry(len(keys), r.rate), keys)
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
func (r *lookupRun) row(table *Table, w *lookupWay, n int) {
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
			times = append(times, nanoseconds(len(batch), func() {
				for _, k := range batch {
					found += w.lookup(k)
				}
			}))
		}
		rounds = append(rounds, median(times))
	}
	return median(rounds), float64(found) / float64(n*lookupRounds)
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
		times = append(times, nanoseconds(1, func() { w.lookup(k) }))
		empty = append(empty, nanoseconds(1, func() {}))
	}
	return median(times) - median(empty)
}
