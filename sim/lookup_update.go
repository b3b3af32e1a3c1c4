package main

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

// measureUpdates adds a row of what changes take, and of lookups meanwhile.
func (r *lookupRun) measureUpdates(x *index.Index, skip bool) error {
	c := r.cluster
	if skip {
		r.updates.skip(c.peers, c.keys, string(c.contents))
		return nil
	}
	apply, err := r.apply(x)
	if err != nil {
		return err
	}
	load, perKey, err := r.load(x)
	if err != nil {
		return err
	}
	lookups, flips, err := r.stream(x)
	if err != nil {
		return err
	}
	r.updates.Row(c.peers, c.keys, string(c.contents), apply, load, perKey, lookups, flips)
	return nil
}

// A changing cache is one whose deltas are applied.
type changing struct {
	name   string
	filter *digest.CountingFilter
	keys   []digest.Key
	held   map[digest.Key]bool
}

func (r *lookupRun) changing(peer int) (*changing, error) {
	keys := r.cluster.keysOf(r.job, peer, new([]uint64))
	filter, err := digest.NewCountingFilter(r.sparse(len(keys)), 2)
	if err != nil {
		return nil, err
	}
	held := make(map[digest.Key]bool, len(keys))
	for _, k := range keys {
		filter.Add(k)
		held[k] = true
	}
	filter.Advance()
	return &changing{name: peerName(peer), filter: filter, keys: keys, held: held}, nil
}

// replace gives the cache other keys for one in a hundred, by the law by which it
// got them.
func (c *changing) replace(r *lookupRun, rng *rand.Rand) (*digest.Filter, *digest.Delta) {
	for range max(1, len(c.keys)/100) {
		k := r.cluster.anotherKey(r.job, rng)
		if c.held[k] {
			continue
		}
		at := rng.IntN(len(c.keys))
		c.filter.Add(k)
		c.filter.Remove(c.keys[at])
		delete(c.held, c.keys[at])
		c.held[k] = true
		c.keys[at] = k
	}
	return c.filter.AdvanceDelta()
}

// apply measures deltas, a flip.
func (r *lookupRun) apply(x *index.Index) (float64, error) {
	var times []float64
	rng := r.job.Rand(6)
	for i := range min(4, r.cluster.peers) {
		c, err := r.changing(i * (r.cluster.peers / 4))
		if err != nil {
			return 0, err
		}
		if err := x.Set(c.name, c.filter.Current()); err != nil {
			return 0, err
		}
		for range r.rounds {
			next, d := c.replace(r, rng)
			times = append(times, nanoseconds(d.Len(), func() { err = x.Apply(c.name, d, next) }))
			if err != nil {
				return 0, err
			}
		}
	}
	return median(times), nil
}

// load measures what it takes to add a peer to all the others: in milliseconds, and
// in nanoseconds a key.
func (r *lookupRun) load(x *index.Index) (all, perKey float64, err error) {
	var times, keyTimes []float64
	for i := range 3 {
		keys := r.cluster.keysOf(r.job, r.cluster.peers+i, new([]uint64))
		f, err := filterOf(r.sparse(len(keys)), keys)
		if err != nil {
			return 0, 0, err
		}
		t := nanoseconds(1, func() { err = x.Set("another", f) })
		if err != nil {
			return 0, 0, err
		}
		times, keyTimes = append(times, t/1e6), append(keyTimes, t/float64(len(keys)))
		x.Delete("another")
	}
	return median(times), median(keyTimes), nil
}

// stream measures lookups a second on all cores while deltas come in.
func (r *lookupRun) stream(x *index.Index) (lookups, flips float64, err error) {
	const length = time.Second
	c, err := r.changing(0)
	if err != nil {
		return 0, 0, err
	}
	if err := x.Set(c.name, c.filter.Current()); err != nil {
		return 0, 0, err
	}
	type update struct {
		next *digest.Filter
		d    *digest.Delta
	}
	rng := r.job.Rand(7)
	perSecond := float64(r.cluster.peers) / 60
	updates := make([]update, int(perSecond*length.Seconds())+1)
	for i := range updates {
		updates[i].next, updates[i].d = c.replace(r, rng)
	}
	var stop atomic.Bool
	var done, flipped atomic.Int64
	var failed atomic.Value
	var wg sync.WaitGroup
	begin := time.Now()
	wg.Go(func() {
		for i, u := range updates {
			time.Sleep(time.Until(begin.Add(time.Duration(float64(i) / perSecond * 1e9))))
			if err := x.Apply(c.name, u.d, u.next); err != nil {
				failed.Store(err)
			}
			flipped.Add(int64(u.d.Len()))
		}
		time.Sleep(time.Until(begin.Add(length)))
		stop.Store(true)
	})
	for i := range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			rng := r.job.Rand(uint64(8 + i))
			var dst []index.Match
			n := 0
			for ; !stop.Load(); n++ {
				dst = x.Lookup(dst[:0], digest.Key(rng.Uint64()))
			}
			done.Add(int64(n))
		})
	}
	wg.Wait()
	took := time.Since(begin).Seconds()
	if err, ok := failed.Load().(error); ok {
		return 0, 0, err
	}
	return float64(done.Load()) / took, float64(flipped.Load()) / took, nil
}
