package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

var _ = experiments.add(Experiment{
	Name:    "ages",
	Summary: "what deltas would save if both sides remembered in which update each position came, on real traces",
	Args:    "[TRACE]",
	Takes:   "f",
	Run:     runAges,
})

const ageClasses = 16

func runAges(ctx context.Context, job *Job) error {
	return forEach(ctx, job, job.own.f, []float64{1e-3}, agesAt)
}

// ownTrace reads the trace that was named, or that of the repository.
func (j *Job) ownTrace(name string) (*trace, error) {
	if len(j.Args) > 0 {
		return readTrace(j.Args[0], false)
	}
	f, err := traceFiles.Open("testdata/" + name + ".ptrace.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseTrace(f, name, false)
}

func agesAt(ctx context.Context, job *Job, rate float64) error {
	table := job.Table(fmt.Sprintf("bits a replaced key, f = %g %%, one hash: which keys left, told with and without their age in %d classes", 100*rate, ageClasses),
		Column{Name: "trace"},
		Column{Name: "evict", Head: "leaves first"},
		Column{Name: "objects", Head: "objects a cache"},
		Column{Name: "threshold", Head: "replaced, %", Format: "%g"},
		Column{Name: "deltas", Loose: 0.1},
		Column{Name: "whole", Head: "whole deltas", Format: "%.2f", Loose: 0.1},
		Column{Name: "left", Head: "which left", Format: "%.2f", Loose: 0.1},
		Column{Name: "aged", Head: "which left, given ages", Format: "%.2f", Loose: 0.1},
		Column{Name: "gain", Head: "saved of the whole delta, %", Format: "%.1f", Loose: 0.5},
		Column{Name: "gain_entropy", Head: "of its entropy, %", Format: "%.1f", Loose: 0.5})
	names, rules := []string{"cache2k-web07", "adaptsize"}, []string{"lru", "fifo", "otter"}
	if len(job.Args) > 1 {
		return usagef("want one TRACE, not %q", job.Args)
	} else if len(job.Args) == 1 {
		names = []string{filepath.Base(job.Args[0])}
	}
	for at, name := range names {
		t, err := job.ownTrace(name)
		if err != nil {
			return err
		}
		for i, evict := range rules {
			for _, threshold := range []float64{0.01, 0.1} {
				if err := ctx.Err(); err != nil {
					return err
				}
				objects := len(t.names) / 10
				job.Progress(at*len(rules)+i, len(names)*len(rules), "%s, %s", name, evict)
				if job.Short && threshold < 0.1 {
					table.skip(name, evict, objects, 100*threshold)
					continue
				}
				a, err := aged(t, rate, evict, objects, threshold)
				if err != nil {
					return err
				}
				per := 1 / float64(a.replaced)
				table.Row(name, evict, objects, 100*threshold, a.deltas, per*a.whole, per*a.left, per*a.aged, 100*(a.left-a.aged)/a.whole, 100*(a.left-a.aged)/a.entropy)
			}
		}
	}
	table.Note("A cache of a tenth of the trace's objects, measured from its second turnover on. Which left: the entropy of so many among all, before and after; no coder is nearer. Given ages: positions in order of the update that they came in, in %d classes, each with the share of those that left in it so far.", ageClasses)
	table.Note("otter differs a little from run to run.")
	return nil
}

// ages are sums over deltas.
type ages struct {
	deltas, replaced           int
	whole, entropy, left, aged float64 // bits
}

// aged replays a trace into one cache that publishes whenever that share of it is new.
func aged(t *trace, rate float64, evict string, objects int, threshold float64) (sum ages, err error) {
	g := digest.Geometry{Bits: uint64(float64(objects) / rate), Hashes: 1}
	held, err := digest.NewCountingFilter(g, 1)
	if err != nil {
		return sum, err
	}
	var cache copies = newLRU(int64(objects))
	if evict == "otter" {
		cache = newTiny(int64(objects))
	}
	touch := cache.get
	if evict == "fifo" {
		touch = cache.peek
	}
	base := held.Advance()
	var positions []uint64 // of base
	var came []int         // the update that each of them came in
	gone := [ageClasses]float64{}
	fresh, arrivals, update := 0, 0, 0
	key := func(k uint32) digest.Key { return digest.Key(mix64(uint64(k) + golden64)) }
	for _, r := range t.requests {
		if _, ok := touch(r.key); ok {
			continue
		}
		cache.put(object{key: r.key}, false, func(k uint32) {
			held.Add(key(k))
			fresh++
			arrivals++
		}, func(k uint32) { held.Remove(key(k)) })
		if float64(fresh) < threshold*float64(objects) {
			continue
		}
		update++
		next, d := held.AdvanceDelta()
		coded, err := d.AppendTo(nil, base)
		if err != nil {
			return sum, err
		}
		is := ascending(next)
		cameIs, stays := make([]int, len(is)), make([]bool, len(positions))
		for i, at := 0, 0; i < len(is); i++ {
			for at < len(positions) && positions[at] < is[i] {
				at++
			}
			if cameIs[i] = update; at < len(positions) && positions[at] == is[i] {
				cameIs[i], stays[at] = came[at], true
			}
		}
		byAge := make([]int, len(positions)) // numbers of positions
		for i := range byAge {
			byAge[i] = i
		}
		slices.SortStableFunc(byAge, func(a, b int) int { return came[a] - came[b] })
		var of, left [ageClasses]float64 // positions of a class, and how many of them left
		all, allLeft := float64(len(positions)), 0.0
		for i, p := range byAge {
			class := i * ageClasses / len(byAge)
			of[class]++
			if !stays[p] {
				left[class]++
				allLeft++
			}
		}
		if arrivals > 2*objects && allLeft > 0 {
			sum.deltas++
			sum.replaced += int(allLeft)
			sum.whole += 8 * float64(len(coded))
			sum.left += all * entropy(allLeft/all)
			none, set := float64(g.Bits)-all, float64(d.Len())-allLeft
			sum.entropy += all*entropy(allLeft/all) + none*entropy(set/none)
			known := 0.0
			for _, n := range gone {
				known += n
			}
			for i := range of {
				odds := allLeft * (gone[i] + 1) / (known + ageClasses) / of[i]
				odds = min(max(odds, 1e-6), 0.999)
				sum.aged -= left[i]*math.Log2(odds) + (of[i]-left[i])*math.Log1p(-odds)/math.Ln2
			}
		}
		for i := range gone {
			gone[i] += left[i]
		}
		base, positions, came, fresh = next, is, cameIs, 0
	}
	return sum, nil
}
