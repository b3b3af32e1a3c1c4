package main

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

// A lookupRun measures one cluster.
type lookupRun struct {
	ctx            context.Context
	job            *Job
	table, updates *Table
	cluster        lookupCluster
	rate           float64
	rounds         int
	sample         []digest.Key // some of what is held
	held           int          // keys of all caches together
	one            []digest.Key // found at one peer
	many           []digest.Key // found at a quarter of the peers or more
}

func newLookupRun(ctx context.Context, job *Job, table, updates *Table, c lookupCluster) *lookupRun {
	return &lookupRun{
		ctx: ctx, job: job, table: table, updates: updates, cluster: c,
		rate: candidatesPerLookup / float64(c.peers), rounds: 5,
	}
}

func (r *lookupRun) sparse(n int) digest.Geometry { return sparse(n, r.rate) }
func (r *lookupRun) dense(n int) digest.Geometry  { return denseFor(n, r.rate) }

// shortLookupKeys is how many keys in all a short run measures at most.
const shortLookupKeys = 100_000

func (r *lookupRun) measure() error {
	skip := r.job.Short && r.cluster.peers*r.cluster.keys > shortLookupKeys
	ours := &indexWay{index: index.New(), geometry: r.sparse}
	if err := r.measureWay("index", ours, 1<<16, skip); err != nil {
		return err
	}
	if err := r.measureUpdates(ours.index, skip); err != nil {
		return err
	}
	if !r.cluster.rivals {
		return nil
	}
	few := max(64, 1<<18/r.cluster.peers)
	for _, rival := range []struct {
		name    string
		make    func() lookupWay
		lookups int
	}{
		{"index, rows", func() lookupWay { return &indexWay{index: index.New(), geometry: r.dense} }, 1 << 16},
		{"postings", func() lookupWay {
			return newPostings(r.sparse(r.cluster.keys), r.cluster.peers*r.cluster.keys)
		}, 1 << 16},
		{"loop, sorted sets", func() lookupWay { return &loopWay{geometry: r.sparse} }, few},
		{"loop, bitmaps", func() lookupWay { return &loopWay{geometry: r.dense} }, few},
	} {
		ours.index = nil
		if rival.name == "postings" && r.cluster.contents == unequal {
			continue // it wants one m for all
		}
		if err := r.measureWay(rival.name, rival.make(), rival.lookups, skip); err != nil {
			return err
		}
	}
	return nil
}

// measureWay fills a way and adds its row, by so many lookups of each kind.
func (r *lookupRun) measureWay(name string, w lookupWay, lookups int, skip bool) error {
	c := r.cluster
	if skip {
		r.table.skip(c.peers, c.keys, string(c.contents), name)
		return nil
	}
	if err := r.fill(name, w); err != nil {
		return err
	}
	if r.one == nil {
		r.chooseKeys(w)
	}
	t := r.times(w, lookups)
	var many, matches, cold any
	if len(r.many) > 0 {
		many, matches = t.many, t.matches
	}
	if lookups > 1<<15 {
		cold = r.cold(w)
	}
	r.table.Row(c.peers, c.keys, string(c.contents), name, t.bytes, t.none, t.one, many, matches, cold)
	return nil
}

// A part of a cluster's contents, on its way to a lookupWay.
type lookupPart struct {
	keys   []digest.Key
	filter any
	err    error
}

// fill gives a way all caches. Their filters are made on all cores and go to the
// way in order.
func (r *lookupRun) fill(name string, w lookupWay) error {
	queue := make(chan chan lookupPart, 2*runtime.GOMAXPROCS(0))
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	pool := sync.Pool{New: func() any { return new([]uint64) }}
	go func() {
		defer close(queue)
		for peer := range r.cluster.peers {
			one := make(chan lookupPart, 1)
			select {
			case queue <- one:
			case <-ctx.Done():
				return
			}
			go func() {
				seen := pool.Get().(*[]uint64)
				keys := r.cluster.keysOf(r.job, peer, seen)
				pool.Put(seen)
				f, err := w.filter(keys)
				one <- lookupPart{keys, f, err}
			}()
		}
	}()
	r.held, r.sample = 0, r.sample[:0]
	rng := r.job.Rand(2)
	peer := 0
	for one := range queue {
		part := <-one
		if part.err != nil {
			return part.err
		}
		if err := w.add(peer, part.filter); err != nil {
			return err
		}
		r.held += len(part.keys)
		for range 1 + 1<<19/r.cluster.peers {
			r.sample = append(r.sample, part.keys[rng.IntN(len(part.keys))])
		}
		peer++
		r.job.Progress(0, 0, "%d peers with %d keys (%s), %s: %d loaded", r.cluster.peers, r.cluster.keys, r.cluster.contents, name, peer)
	}
	return r.ctx.Err()
}

// chooseKeys finds keys to look up.
func (r *lookupRun) chooseKeys(w lookupWay) {
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

type lookupTimes struct{ bytes, none, one, many, matches float64 }

// times measures lookups of so many keys of each kind.
func (r *lookupRun) times(w lookupWay, n int) (t lookupTimes) {
	t.bytes = float64(w.bytes()) / float64(r.held)
	rng := r.job.Rand(4)
	none := make([]digest.Key, n)
	var nones, ones, manys []float64
	found := 0
	for round := range r.rounds {
		for i := range none {
			none[i] = digest.Key(rng.Uint64())
		}
		nones = append(nones, nanosecondsEach(w, none, &found))
		if one := part(r.one, n, round, r.rounds); len(one) > 0 {
			ones = append(ones, nanosecondsEach(w, one, &found))
		}
		if many := part(r.many, min(n, 4096), round, r.rounds); len(many) > 0 {
			found = 0
			manys = append(manys, nanosecondsEach(w, many, &found))
			t.matches = float64(found) / float64(len(many))
		}
	}
	t.none = median(nones)
	if len(ones) > 0 {
		t.one = median(ones)
	}
	if len(manys) > 0 {
		t.many = median(manys)
	}
	return t
}

// part returns the part of keys that is for one of several rounds, at most n.
func part(keys []digest.Key, n, round, rounds int) []digest.Key {
	size := min(n, len(keys)/rounds)
	return keys[round*size:][:size]
}

// nanosecondsEach is the median over batches that are shorter than what other
// programs are given of the processor at a time.
func nanosecondsEach(w lookupWay, keys []digest.Key, found *int) float64 {
	var times []float64
	for batch := range slices.Chunk(keys, max(1, len(keys)/256)) {
		times = append(times, nanoseconds(len(batch), func() {
			for _, k := range batch {
				*found += w.lookup(k)
			}
		}))
	}
	return median(times)
}

// cold measures lookups that find nothing in the processor's caches.
func (r *lookupRun) cold(w lookupWay) float64 {
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
