package systems

import (
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

var agesExperiment = lab.Experiment{
	Name:    "ages",
	Summary: "what deltas save if both sides remember in which update each position came, and those that left lately",
	Seconds: 5,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		f := lab.RatesFlag(flags, 1e-3)
		return func(ctx context.Context, job *lab.Job) error {
			return lab.ForEach(*f, func(f float64) error { return agesAt(ctx, job, f) })
		}
	},
}

// A secondChance is a CLOCK: a cache that gives what was requested again a second chance.
type secondChance struct {
	*lru
	used map[uint32]bool
}

func (c secondChance) get(key uint32) (object, bool) {
	o, held := c.peek(key)
	if held {
		c.used[key] = true
	}
	return o, held
}

// put leaves an object that was not requested again at the end, from where it is evicted. Each turn
// forgets a request, so it ends.
func (c secondChance) put(o object, copy bool, came, left func(uint32)) bool {
	for last := c.order.Back(); last != nil && c.used[last.Value.(object).key]; last = c.order.Back() {
		delete(c.used, last.Value.(object).key)
		c.order.MoveToFront(last)
	}
	return c.lru.put(o, copy, came, left)
}

// A fifo evicts what came first.
type fifo struct{ *lru }

func (c fifo) get(key uint32) (object, bool) { return c.peek(key) }

func agesAt(ctx context.Context, job *lab.Job, rate float64) error {
	number := func(name, head, format string) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: 0.5}
	}
	table := job.Table(fmt.Sprintf("deltas at f = %g, one hash, bits a replaced key: what ages and returning keys save", rate),
		lab.Column{Name: "trace"}, lab.Column{Name: "evict", Head: "leaves first"}, lab.Column{Name: "objects", Head: "objects a cache"},
		lab.Column{Name: "threshold", Head: "replaced, %", Format: "%g"}, number("deltas", "", "%.0f"),
		number("whole", "whole message", "%.2f"), number("bare", "without its frame", "%.2f"),
		number("back", "arrivals that come back, %", "%.1f"), number("ages", "ages save, %", "%.1f"),
		number("ghosts", "returning keys save, %", "%.1f"), number("both", "both save, %", "%.1f"), number("both_whole", "both, of the whole message, %", "%.1f"))
	for _, name := range ownTraces[1:] {
		t, err := ownTrace(name)
		if err != nil {
			return err
		}
		objects := len(t.Sizes) / 10
		for _, p := range []struct {
			evict string
			make  func() copies
		}{
			{"LRU", func() copies { return newLRU(int64(objects)) }}, {"FIFO", func() copies { return fifo{newLRU(int64(objects))} }},
			{"CLOCK", func() copies { return secondChance{newLRU(int64(objects)), map[uint32]bool{}} }}, {"otter", func() copies { return newTiny(int64(objects)) }},
		} {
			for _, threshold := range []float64{0.01, 0.1} {
				if err := ctx.Err(); err != nil {
					return err
				}
				if job.Short && (threshold < 0.1 || p.evict == "otter") {
					table.Skip(name, p.evict, objects, 100*threshold)
					continue
				}
				a := aged{geometry: digest.Geometry{Bits: uint64(float64(objects) / rate), Hashes: 1}, objects: objects}
				held, err := digest.NewCountingFilter(a.geometry, 1)
				if err != nil {
					return err
				}
				cache, base, fresh, arrivals := p.make(), held.Advance(), 0, 0
				numbers := map[string]uint32{}
				key := func(k uint32) digest.Key { return digest.Key(lab.Mix64(uint64(k) + lab.Golden64)) }
				for _, r := range t.Requests {
					k, known := numbers[r.Key]
					if !known {
						k = uint32(len(numbers))
						numbers[r.Key] = k
					}
					if _, ok := cache.get(k); ok {
						continue
					}
					cache.put(object{key: k}, false, func(k uint32) { held.Add(key(k)); fresh++; arrivals++ }, func(k uint32) { held.Remove(key(k)) })
					if float64(fresh) < threshold*float64(objects) {
						continue
					}
					next, d := held.AdvanceDelta()
					whole, err := d.AppendTo(nil, base)
					if err != nil {
						return err
					}
					a.update(slices.Collect(next.Positions()), len(whole), arrivals > 2*objects)
					base, fresh = next, 0
				}
				per, saved := 8/a.replaced, func(part float64) float64 { return 100 * (1 - part/a.plain) }
				table.Row(name, p.evict, objects, 100*threshold, a.deltas, per*a.whole, per*a.plain, 100*a.back/a.arrived,
					saved(a.aged), saved(a.ghosted), saved(a.both), 100*(a.plain-a.both)/a.whole)
			}
		}
	}
	table.Note("A cache of a tenth of the trace's objects, measured from its second turnover on. All sizes are those of codes: sets by package arith, and with ages and returning keys an arithmetic coder of a bit for each position, with its counts.")
	table.Note("Ages: positions in the order of the update in which they came, in %d classes, each with the share of those that left in it so far. Returning keys: positions that left, as many as the cache has objects, in the order in which they left, likewise. otter differs a little from run to run.", ageClasses)
	return nil
}

const ageClasses = 16

// aged follows one publisher as a receiver does that has all of its updates.
type aged struct {
	geometry digest.Geometry
	objects  int
	held     []uint64 // positions, in the order in which they came
	ghosts   []uint64 // positions that left, the last ones behind
	gone     [ageClasses]float64
	returned [ageClasses]float64

	deltas, replaced, arrived, back   float64
	whole, plain, aged, ghosted, both float64 // bytes
}

// update codes an update to the ascending positions next in each way.
func (a *aged) update(next []uint64, whole int, counts bool) {
	after := make(map[uint64]bool, len(next))
	for _, p := range next {
		after[p] = true
	}
	leave := func(p uint64) bool { return !after[p] }
	was := slices.Sorted(slices.Values(a.held))
	came := slices.DeleteFunc(slices.Clone(next), func(p uint64) bool { _, held := slices.BinarySearch(was, p); return held })
	left := slices.DeleteFunc(slices.Clone(a.held), func(p uint64) bool { return !leave(p) })
	back := func(p uint64) bool { return after[p] }
	known := slices.Sorted(slices.Values(append(slices.Clone(was), a.ghosts...)))
	others := slices.DeleteFunc(slices.Clone(came), func(p uint64) bool { _, left := slices.BinarySearch(known, p); return left })

	leaving, returning := a.classes(a.held, leave, &a.gone), a.classes(a.ghosts, back, &a.returned)
	if counts && len(left) > 0 {
		sets, clears := ranked(a.geometry.Bits, was, came, false), ranked(uint64(len(was)), was, slices.Sorted(slices.Values(left)), true)
		rest := ranked(a.geometry.Bits, known, others, false)
		a.deltas++
		a.replaced += float64(len(left))
		a.arrived += float64(len(came))
		a.back += float64(len(came) - len(others))
		a.whole += float64(whole)
		a.plain += float64(sets + clears + 2)
		a.aged += float64(sets + leaving + 2)
		a.ghosted += float64(rest + returning + clears + 3)
		a.both += float64(rest + returning + leaving + 3 - 1) // one stream
	}
	a.held = append(slices.DeleteFunc(a.held, leave), came...)
	a.ghosts = append(slices.DeleteFunc(a.ghosts, back), left...)
	a.ghosts = a.ghosts[max(0, len(a.ghosts)-a.objects):]
}

// classes is the length of the code of the positions for which event holds, in order, by the share of
// each class in the events so far; it then counts them.
func (a *aged) classes(positions []uint64, event func(uint64) bool, seen *[ageClasses]float64) int {
	var of, now [ageClasses]float64
	total, known := 0.0, 0.0
	class := func(i int) int { return i * ageClasses / len(positions) }
	for i, p := range positions {
		of[class(i)]++
		if event(p) {
			now[class(i)]++
			total++
		}
	}
	for _, n := range seen {
		known += n
	}
	e := lab.NewBitEncoder()
	for i, p := range positions {
		c := class(i)
		e.Encode(event(p), lab.Odds(total*(seen[c]+1)/(known+ageClasses)/of[c]))
	}
	for i := range seen {
		seen[i] += now[i]
	}
	return len(e.Finish())
}

// ranked is the length of the code of a set within a sorted one, or outside it.
func ranked(m uint64, sorted, set []uint64, within bool) int {
	ranks, n := make([]uint64, len(set)), m
	if !within {
		n = m - uint64(len(sorted))
	}
	for i, p := range set {
		at, _ := slices.BinarySearch(sorted, p)
		if ranks[i] = uint64(at); !within {
			ranks[i] = p - uint64(at)
		}
	}
	return len(arith.AppendSet(nil, arith.Choose(n, uint64(len(set))), n, ranks))
}
