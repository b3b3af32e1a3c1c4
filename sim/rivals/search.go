package rivals

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

var searchExperiment = lab.Experiment{
	Name:    "search",
	Summary: "lookups in a sorted list of positions by binary and by interpolation search, and in package digest's buckets",
	Seconds: 1,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		n := lab.KeysFlag(flags, 1000, 10_000, 100_000, 1_000_000)
		return func(ctx context.Context, job *lab.Job) error { return runSearch(ctx, job, *n) }
	},
}

func runSearch(ctx context.Context, job *lab.Job, sizes []int) error {
	const mn, lookups, rounds = 92, 100_000, 3 // m/n of section III-A
	column := func(name, head, format string, loose float64) lab.Column {
		return lab.Column{Name: name, Head: head, Format: format, Loose: loose}
	}
	table := job.Table(fmt.Sprintf("one hash, m/n = %d: positions that a lookup reads, and its time", mn),
		lab.Column{Name: "keys", Head: "n"},
		column("log", "log2 n", "%.1f", lab.Exact),
		column("loglog", "log2 log2 n", "%.1f", lab.Exact),
		column("binary", "binary search", "%.2f", lab.Exact),
		column("interpolation", "interpolation search", "%.2f", lab.Exact),
		column("interpolation_absent", "the same, absent key", "%.2f", lab.Exact),
		column("binary_ns", "binary search ns", "%.0f", lab.AnyValue),
		column("interpolation_ns", "interpolation search ns", "%.0f", lab.AnyValue),
		column("digest_ns", "package digest ns", "%.0f", lab.AnyValue),
		column("list_bits", "bits/key of the list, log2(92n)", "%.1f", lab.Exact),
		column("digest_bits", "bits/key in package digest", "%.2f", lab.Exact))
	for _, n := range sizes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if job.Short && n > 10_000 {
			table.Skip(n)
			continue
		}
		g := digest.Geometry{Bits: mn * uint64(n), Hashes: 1}
		rng := job.Rand(uint64(n))
		held := lab.RandomKeys(rng, n)
		f, err := lab.FilterOf(g, held)
		if err != nil {
			return err
		}
		list := slices.Collect(f.Positions())
		present, absent := make([]digest.Key, lookups), make([]digest.Key, lookups)
		for i := range present {
			present[i], absent[i] = held[rng.IntN(n)], digest.Key(rng.Uint64())
		}
		// average returns the mean number of positions that find reads, and its time in ns.
		average := func(keys []digest.Key, find func(k digest.Key) (reads int)) (reads, ns float64) {
			sum := 0
			times := make([]float64, rounds)
			for i := range times {
				times[i] = lab.Nanoseconds(lookups, func() {
					for _, k := range keys {
						sum += find(k)
					}
				})
			}
			return lab.Round(float64(sum)/rounds/lookups, 5), lab.Median(times)
		}
		position := func(k digest.Key) uint64 { p, _ := bits.Mul64(uint64(k), g.Bits); return p }
		interpolate := func(k digest.Key) int { return interpolationSearch(list, g.Bits, position(k)) }
		binary, binaryTime := average(present, func(k digest.Key) int { return binarySearch(list, position(k)) })
		found, foundTime := average(present, interpolate)
		missed, _ := average(absent, interpolate)
		_, digestTime := average(present, func(k digest.Key) int { lookUp(f, []digest.Key{k}, true); return 0 })
		log := math.Log2(float64(n))
		table.Row(n, lab.Round(log, 4), lab.Round(math.Log2(log), 4), binary, found, missed, binaryTime, foundTime, digestTime,
			lab.Round(math.Log2(mn*float64(n)), 4), 8*float64(f.MemoryBytes())/float64(n))
	}
	table.Note("Times are medians of %d rounds and depend on the machine. The list has 64-bit positions. If it were packed, it would take the bits in its column, and lookups would take longer.", rounds)
	return nil
}

// binarySearch returns how many positions it reads until it finds p or knows that p is absent.
func binarySearch(list []uint64, p uint64) (reads int) {
	for low, high := 0, len(list); low < high; {
		reads++
		switch mid := (low + high) / 2; {
		case list[mid] == p:
			return reads
		case list[mid] < p:
			low = mid + 1
		default:
			high = mid
		}
	}
	return reads
}

// interpolationSearch does the same. It next reads where p would be if the positions between
// two known ones were evenly spread. Each read excludes at least one position, so it ends.
func interpolationSearch(list []uint64, m, p uint64) (reads int) {
	low, high := 0, len(list)   // p can only be in list[low:high]
	least, most := uint64(0), m // whose positions are in [least, most)
	for low < high && least <= p && p < most {
		reads++
		at := low + int(float64(p-least)/float64(most-least)*float64(high-low))
		at = min(at, high-1)
		switch {
		case list[at] == p:
			return reads
		case list[at] < p:
			low, least = at+1, list[at]+1
		default:
			high, most = at, list[at]
		}
	}
	return reads
}
