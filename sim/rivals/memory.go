package rivals

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

var memoryExperiment = lab.Experiment{
	Name:    "memory",
	Summary: "memory, lookup and update times of a replica in each representation, and of its publisher",
	Seconds: 6,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n := lab.KeysFlag(flags, 1_000_000)
		shapes := lab.ShapesFlag(flags, lab.Shape{MN: 8, K: 5}, lab.Shape{MN: 14, K: 2}, lab.Shape{MN: 48, K: 3}, lab.Shape{MN: 92, K: 1}, lab.Shape{MN: 50, K: 1}, lab.Shape{MN: 100, K: 1}, lab.Shape{MN: 1000, K: 1}, lab.Shape{MN: 10000, K: 1})
		return func(ctx context.Context, job *lab.Job) error {
			return lab.ForEach(*n, func(n int) error { return memoryOf(ctx, job, n, *shapes) })
		}
	},
}

const memoryRounds = 5

func memoryOf(ctx context.Context, job *lab.Job, n int, shapes []lab.Shape) error {
	table := job.Table(fmt.Sprintf("replicas of n = %d keys", n),
		lab.Column{Name: "bits_per_key", Head: "m/n", Format: "%g"},
		lab.Column{Name: "hashes", Head: "k"},
		lab.Column{Name: "form", Loose: 1e-9},
		lab.Column{Name: "memory", Head: "bits/key", Format: "%.2f", Loose: 0.01},
		lab.Column{Name: "limit", Head: "log2(m/n)+3", Format: "%.2f"},
		lab.Column{Name: "hit_ns", Head: "hit ns", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "miss_ns", Head: "miss ns", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "apply_ns", Head: "apply ns/flip", Format: "%.0f", Loose: lab.AnyValue})
	local := job.Table(fmt.Sprintf("publishers of n = %d keys, 1 %% replaced between freezes", n),
		lab.Column{Name: "bits_per_key", Head: "m/n", Format: "%g"},
		lab.Column{Name: "hashes", Head: "k"},
		lab.Column{Name: "bytes_per_key", Head: "bytes/key", Format: "%.2f", Loose: 0.01},
		lab.Column{Name: "change_ns", Head: "add or remove ns", Format: "%.0f", Loose: lab.AnyValue},
		lab.Column{Name: "freeze_ns", Head: "freeze ns/replaced key", Format: "%.0f", Loose: lab.AnyValue})
	for i, s := range shapes {
		job.Progress(i, len(shapes), "m/n = %g, k = %d", s.MN, s.K)
		if job.Short && s.MN != 1000 {
			table.Row(s.MN, s.K, nil, nil, keyLimit(s.MN, s.K), nil, nil, nil)
			local.Skip(s.MN, s.K)
			continue
		}
		if err := measureMemory(ctx, job, n, s.MN, s.K, table, local); err != nil {
			return err
		}
	}
	table.Note("times are medians of %d rounds and depend on the machine; apply is the new filter over its flips, 1 %% replaced", memoryRounds)
	return nil
}

func measureMemory(ctx context.Context, job *lab.Job, n int, mn float64, k int, table, local *lab.Table) error {
	g := digest.Geometry{Bits: uint64(mn * float64(n)), Hashes: k}
	rng := job.Rand(g.Bits)
	held, keys, base, err := lab.Filled(g, rng, n)
	if err != nil {
		return err
	}
	absent := lab.RandomKeys(rng, n/10)
	var change, freeze, apply, hit, miss []float64
	replaced := n / 100
	for round := range memoryRounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := keys[round*replaced%n:][:replaced]
		change = append(change, lab.Nanoseconds(2*replaced, func() {
			for i, key := range part {
				held.Remove(key)
				part[i] = digest.Key(lab.Mix64(uint64(key)))
				held.Add(part[i])
			}
		}))
		var d *digest.Delta
		var next *digest.Filter
		freeze = append(freeze, lab.Nanoseconds(replaced, func() { next, d = held.AdvanceDelta() }))
		apply = append(apply, lab.Nanoseconds(d.Len(), func() { _, err = d.Apply(base) }))
		if err != nil {
			return err
		}
		base = next
		hit = append(hit, lab.Nanoseconds(len(absent), func() { lookUp(base, keys[:len(absent)], true) }))
		miss = append(miss, lab.Nanoseconds(len(absent), func() { lookUp(base, absent, false) }))
	}
	form := "sorted"
	if base.Dense() {
		form = "bitmap"
	}
	table.Row(mn, k, form, 8*float64(base.MemoryBytes())/float64(n), keyLimit(mn, k), lab.Median(hit), lab.Median(miss), lab.Median(apply))
	local.Row(mn, k, float64(held.MemoryBytes())/float64(n), lab.Median(change), lab.Median(freeze))
	return nil
}

// keyLimit is the limit on the bits of a key in sorted form, or nil if there are several
// hashes.
func keyLimit(mn float64, k int) any {
	if k > 1 {
		return nil
	}
	return lab.Round(math.Log2(mn)+3, 4)
}

// lookUp looks up keys. If there is set, all of them must be found.
func lookUp(f *digest.Filter, keys []digest.Key, there bool) {
	for _, k := range keys {
		if !f.MayContain(k) && there {
			panic("sim: a key that was added is missing")
		}
	}
}
