package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

// A churnResult is the result of one run.
type churnResult struct {
	overflow int // replacements until an increment met a full counter
	negative int // until a held key was denied; 0 for never
	kept     int // keys denied at the end by counters that keep their maximum
}

// run replaces random keys until a held key is denied. It keeps three arrays: the true counts,
// the counters if full ones are decremented, and the counters if they are not.
func (c churn) run(job *Job, label uint64) churnResult {
	rng := job.source(7, label)
	m, full := c.positions(), uint16(1<<c.bits-1)
	truth, lossy, kept := make([]uint16, m), make([]uint16, m), make([]uint16, m)
	keys := make([]uint64, c.n*c.k)
	var r churnResult
	step := 0
	add := func(key []uint64) {
		for i := range key {
			p := below(rng, m)
			key[i] = p
			truth[p]++
			if lossy[p] < full {
				lossy[p]++
			} else if r.overflow == 0 {
				r.overflow = max(1, step)
			}
			kept[p] = min(full, kept[p]+1)
		}
	}
	for i := range c.n {
		add(keys[i*c.k : (i+1)*c.k])
	}
	for step = 1; step <= churnLimit && r.negative == 0; step++ {
		at := int(below(rng, uint64(c.n))) * c.k
		key := keys[at : at+c.k]
		for _, p := range key {
			truth[p]--
			if lossy[p] > 0 {
				lossy[p]--
			}
			if kept[p] < full {
				kept[p]--
			}
		}
		// The new key may set a position at which another key is denied now, so look first.
		for _, p := range key {
			if lossy[p] == 0 && truth[p] > 0 {
				r.negative = step
			}
		}
		add(key)
	}
	for i := range c.n {
		for _, p := range keys[i*c.k : (i+1)*c.k] {
			if kept[p] == 0 {
				r.kept++
				break
			}
		}
	}
	return r
}

// stuck runs package digest's own filter at loads far above the planned one, and looks up
// all of its keys after every turnover.
func stuck(ctx context.Context, job *Job, turnovers int) error {
	const n, k = 2_000, 4
	loads := []float64{math.Ln2, 2, 4, 6}
	type outcome struct {
		lookups, negatives, refused int
		f, anew                     float64
	}
	results := make([]outcome, len(loads))
	err := job.each(ctx, len(loads), "digests at work", func(i int) error {
		rng := job.source(8, uint64(i))
		r := &results[i]
		geometry := digest.Geometry{Bits: uint64(math.Round(n * k / loads[i])), Hashes: k}
		filter, keys, _, err := filled(geometry, rng, n)
		if err != nil {
			return err
		}
		for range turnovers {
			for range n {
				j := below(rng, n)
				if !filter.Remove(keys[j]) {
					r.refused++
				}
				keys[j] = digest.Key(rng.Uint64())
				filter.Add(keys[j])
			}
			frozen := filter.Advance()
			for _, key := range keys {
				r.lookups++
				if !filter.MayContain(key) || !frozen.MayContain(key) {
					r.negatives++
				}
			}
			r.f = frozen.FalsePositiveRate()
		}
		anew, err := digest.FilterOf(geometry, digest.Version{Epoch: 1}, slices.Values(keys))
		if err != nil {
			return err
		}
		r.anew = anew.FalsePositiveRate()
		return nil
	})
	if err != nil {
		return err
	}
	table := job.Table(fmt.Sprintf("Package digest's counting filter, n = %d, k = %d, after each of %d turnovers", n, k, turnovers),
		Column{Name: "load", Head: "load kn/m", Format: "%.3f"}, Column{Name: "lookups", Head: "held keys looked up", Loose: AnyValue},
		Column{Name: "negatives", Head: "false negatives"}, Column{Name: "refused", Head: "removals refused"},
		Column{Name: "f", Head: "f at the end", Format: "%.5g", Loose: 0.3}, Column{Name: "anew", Head: "f, built anew", Format: "%.5g", Loose: 0.3})
	for i, r := range results {
		table.Row(figures(loads[i], 5), r.lookups, r.negatives, r.refused, figures(r.f, 6), figures(r.anew, 6))
	}
	table.Note("Its full counters stay full. Hence the false-positive rate grows slowly where counters overflow, until the filter is rebuilt.")
	return nil
}
