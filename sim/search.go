package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

var _ = experiments.add(Experiment{
	Name:    "search",
	Summary: "a lookup in a sorted list of positions, by halves and by interpolation, beside package digest's buckets",
	Seconds: 1,
	Flags: func(flags *flag.FlagSet) runner {
		n := keysFlag(flags, 1000, 10_000, 100_000, 1_000_000)
		return func(ctx context.Context, job *Job) error { return runSearch(ctx, job, *n) }
	},
})

func runSearch(ctx context.Context, job *Job, sizes []int) error {
	const mn, asked = 92, 100_000 // m/n of section III-A
	table := job.Table(fmt.Sprintf("one hash, m/n = %d: positions looked at for a key that is there and for one that is not", mn),
		Column{Name: "keys", Head: "n"},
		Column{Name: "log", Head: "log2 n", Format: "%.1f"},
		Column{Name: "loglog", Head: "log2 log2 n", Format: "%.1f"},
		Column{Name: "halves", Head: "by halves", Format: "%.2f", Loose: exact},
		Column{Name: "interpolated", Head: "by interpolation", Format: "%.2f", Loose: exact},
		Column{Name: "interpolated_absent", Head: "absent", Format: "%.2f", Loose: exact},
		Column{Name: "halves_ns", Head: "by halves ns", Format: "%.0f", Loose: AnyValue},
		Column{Name: "interpolated_ns", Head: "by interpolation ns", Format: "%.0f", Loose: AnyValue},
		Column{Name: "digest_ns", Head: "package digest ns", Format: "%.0f", Loose: AnyValue},
		Column{Name: "list_bits", Head: "bits/key of the list, log2(92n)", Format: "%.1f"},
		Column{Name: "digest_bits", Head: "bits/key in package digest", Format: "%.2f", Loose: exact})
	for _, n := range sizes {
		if err := ctx.Err(); err != nil {
			return err
		}
		log := math.Log2(float64(n))
		if job.Short && n > 10_000 {
			table.Row(n, figures(log, 4), figures(math.Log2(log), 4), nil, nil, nil, nil, nil, nil, figures(math.Log2(mn*float64(n)), 4), nil)
			continue
		}
		rng := job.Rand(uint64(n))
		g := digest.Geometry{Bits: mn * uint64(n), Hashes: 1}
		held := randomKeys(rng, n)
		f, err := filterOf(g, held)
		if err != nil {
			return err
		}
		list := slices.Collect(f.Positions())
		there, absent := make([]digest.Key, asked), make([]digest.Key, asked)
		for i := range there {
			there[i], absent[i] = held[rng.IntN(n)], digest.Key(rng.Uint64())
		}
		// each returns positions looked at and nanoseconds, for each key.
		each := func(keys []digest.Key, find func(k digest.Key) int) (looked, ns float64) {
			var times []float64
			for range 3 {
				sum := 0
				times = append(times, nanoseconds(asked, func() {
					for _, k := range keys {
						sum += find(k)
					}
				}))
				looked = float64(sum) / asked
			}
			return looked, median(times)
		}
		place := func(k digest.Key) uint64 { p, _ := bits.Mul64(uint64(k), g.Bits); return p }
		halves, halvesTime := each(there, func(k digest.Key) int { return byHalves(list, place(k)) })
		inside, insideTime := each(there, func(k digest.Key) int { return byInterpolation(list, g.Bits, place(k)) })
		outside, _ := each(absent, func(k digest.Key) int { return byInterpolation(list, g.Bits, place(k)) })
		_, digestTime := each(there, func(k digest.Key) int { ask(f, []digest.Key{k}, true); return 0 })
		table.Row(n, figures(log, 4), figures(math.Log2(log), 4), figures(halves, 5), figures(inside, 5), figures(outside, 5),
			halvesTime, insideTime, digestTime, figures(math.Log2(mn*float64(n)), 4), float64(8*f.MemoryBytes())/float64(n))
	}
	table.Note("Times are medians of three rounds and depend on the machine. The list is of 64-bit positions; packed, it would take the bits in its column, and more time.")
	return nil
}

// byHalves returns how many positions it looks at until it finds p, or finds p absent.
func byHalves(list []uint64, p uint64) (looked int) {
	for low, high := 0, len(list); low < high; {
		looked++
		switch mid := (low + high) / 2; {
		case list[mid] == p:
			return looked
		case list[mid] < p:
			low = mid + 1
		default:
			high = mid
		}
	}
	return looked
}

// byInterpolation looks where p would be if the positions between two known ones were evenly
// spread. Each look shortens the list by at least one, so it ends.
func byInterpolation(list []uint64, m, p uint64) (looked int) {
	low, high := 0, len(list)   // p is in list[low:high], if anywhere
	least, most := uint64(0), m // and all of those are in [least, most)
	for low < high && least <= p && p < most {
		looked++
		at := low + int(float64(p-least)/float64(most-least)*float64(high-low))
		at = min(at, high-1)
		switch {
		case list[at] == p:
			return looked
		case list[at] < p:
			low, least = at+1, list[at]+1
		default:
			high, most = at, list[at]
		}
	}
	return looked
}
