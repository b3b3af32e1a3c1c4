package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
)

var _ = experiments.add(Experiment{
	Name:    "memory",
	Summary: "memory, lookup and update times of a replica in each representation, and of its publisher",
	Seconds: 6,
	Flags: func(flags *flag.FlagSet) runner {
		n := keysFlag(flags, 1_000_000)
		shapes := shapesFlag(flags, shape{8, 5}, shape{14, 2}, shape{48, 3}, shape{92, 1}, shape{50, 1}, shape{100, 1}, shape{1000, 1}, shape{10000, 1})
		return func(ctx context.Context, job *Job) error {
			return forEach(*n, func(n int) error { return memoryOf(ctx, job, n, *shapes) })
		}
	},
})

const memoryRounds = 5

func memoryOf(ctx context.Context, job *Job, n int, shapes []shape) error {
	table := job.Table(fmt.Sprintf("replicas of n = %d keys", n),
		Column{Name: "bits_per_key", Head: "m/n", Format: "%g"},
		Column{Name: "hashes", Head: "k"},
		Column{Name: "form", Loose: 1e-9},
		Column{Name: "memory", Head: "bits/key", Format: "%.2f", Loose: 0.01},
		Column{Name: "limit", Head: "log2(m/n)+3", Format: "%.2f"},
		Column{Name: "hit_ns", Head: "hit ns", Format: "%.0f", Loose: AnyValue},
		Column{Name: "miss_ns", Head: "miss ns", Format: "%.0f", Loose: AnyValue},
		Column{Name: "apply_ns", Head: "apply ns/flip", Format: "%.0f", Loose: AnyValue})
	local := job.Table(fmt.Sprintf("publishers of n = %d keys, 1 %% replaced between freezes", n),
		Column{Name: "bits_per_key", Head: "m/n", Format: "%g"},
		Column{Name: "hashes", Head: "k"},
		Column{Name: "bytes_per_key", Head: "bytes/key", Format: "%.2f", Loose: 0.01},
		Column{Name: "change_ns", Head: "add or remove ns", Format: "%.0f", Loose: AnyValue},
		Column{Name: "freeze_ns", Head: "freeze ns/replaced key", Format: "%.0f", Loose: AnyValue})
	for i, s := range shapes {
		job.Progress(i, len(shapes), "m/n = %g, k = %d", s.mn, s.k)
		if job.Short && s.mn != 1000 {
			table.Row(s.mn, s.k, nil, nil, keyLimit(s.mn, s.k), nil, nil, nil)
			local.skip(s.mn, s.k)
			continue
		}
		if err := measureMemory(ctx, job, n, s.mn, s.k, table, local); err != nil {
			return err
		}
	}
	table.Note("times are medians of %d rounds and depend on the machine; apply is the new filter over its flips, 1 %% replaced", memoryRounds)
	return nil
}

func measureMemory(ctx context.Context, job *Job, n int, mn float64, k int, table, local *Table) error {
	g := digest.Geometry{Bits: uint64(mn * float64(n)), Hashes: k}
	rng := job.Rand(g.Bits)
	held, keys, base, err := filled(g, rng, n)
	if err != nil {
		return err
	}
	absent := randomKeys(rng, n/10)
	var change, freeze, apply, hit, miss []float64
	replaced := n / 100
	for round := range memoryRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := keys[round*replaced%n:][:replaced]
		change = append(change, nanoseconds(2*replaced, func() {
			for i, key := range part {
				held.Remove(key)
				part[i] = digest.Key(mix64(uint64(key)))
				held.Add(part[i])
			}
		}))
		var d *digest.Delta
		var next *digest.Filter
		freeze = append(freeze, nanoseconds(replaced, func() { next, d = held.AdvanceDelta() }))
		apply = append(apply, nanoseconds(d.Len(), func() { _, err = d.Apply(base) }))
		if err != nil {
			return err
		}
		base = next
		hit = append(hit, nanoseconds(len(absent), func() { lookUp(base, keys[:len(absent)], true) }))
		miss = append(miss, nanoseconds(len(absent), func() { lookUp(base, absent, false) }))
	}
	form := "sorted"
	if base.Dense() {
		form = "bitmap"
	}
	table.Row(mn, k, form, 8*float64(base.MemoryBytes())/float64(n), keyLimit(mn, k), median(hit), median(miss), median(apply))
	local.Row(mn, k, float64(held.MemoryBytes())/float64(n), median(change), median(freeze))
	return nil
}

// keyLimit is the limit on the bits of a key in sorted form, or nil if there are several
// hashes.
func keyLimit(mn float64, k int) any {
	if k > 1 {
		return nil
	}
	return figures(math.Log2(mn)+3, 4)
}

// lookUp looks up keys. If there is set, all of them must be found.
func lookUp(f *digest.Filter, keys []digest.Key, there bool) {
	for _, k := range keys {
		if !f.MayContain(k) && there {
			panic("sim: a key that was added is missing")
		}
	}
}

func nanoseconds(n int, work func()) float64 {
	begin := time.Now()
	work()
	return float64(time.Since(begin).Nanoseconds()) / float64(max(n, 1))
}

func median[T cmp.Ordered](x []T) T {
	slices.Sort(x)
	return x[len(x)/2]
}
