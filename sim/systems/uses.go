package systems

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/sim/lab"
)

var usesExperiment = lab.Experiment{
	Name:    "uses",
	Summary: "other uses of filters: set operations, Bloom joins, PlanetP's search, attenuated and aggregated filters",
	Seconds: 1,
	Flags: func(flags *flag.FlagSet) lab.Runner {
		f, shapes := lab.RatesFlag(flags, 0.05, 0.001), lab.ShapesFlag(flags, lab.Shape{MN: 8, K: 5}, lab.Shape{MN: 14, K: 2}, lab.Shape{MN: 100, K: 1}, lab.Shape{MN: 1000, K: 1})
		return func(ctx context.Context, job *lab.Job) error { return runUses(ctx, job, *f, *shapes) }
	},
}

func runUses(ctx context.Context, job *lab.Job, rates []float64, shapes []lab.Shape) error {
	if err := setOperations(job, shapes); err != nil {
		return err
	}
	if err := bloomJoin(job); err != nil {
		return err
	}
	if err := planetP(ctx, job, rates); err != nil {
		return err
	}
	return aggregated(ctx, job)
}

// bitmapOf returns the array of a filter with those keys.
func bitmapOf(g digest.Geometry, keys []digest.Key) lab.Bitmap {
	words := lab.NewBitmap(g.Bits)
	for _, k := range keys {
		words.Set(g.AppendPositions(nil, k)...)
	}
	return words
}

// count returns how many of the keys a filter contains.
func count(keys []digest.Key, contains func(k digest.Key) bool) (n int) {
	for _, k := range keys {
		if contains(k) {
			n++
		}
	}
	return n
}

// setOperations combines the arrays of two sets that share half of their keys.
func setOperations(job *lab.Job, shapes []lab.Shape) error {
	const n, shared, probes = 20_000, 10_000, 200_000
	table := job.Table(fmt.Sprintf("Set operations: arrays of two sets of %d keys that share %d", n, shared),
		lab.Column{Name: "bits_per_key", Head: "m/n", Format: "%g"},
		lab.Column{Name: "hashes", Head: "k"},
		lab.Column{Name: "union", Head: "union, f", Format: "%.5f"},
		lab.Column{Name: "union_predicted", Head: "predicted", Format: "%.5f"},
		lab.Column{Name: "both", Head: "intersection, f of keys in neither set", Format: "%.5f"},
		lab.Column{Name: "both_predicted", Head: "predicted", Format: "%.5f"},
		lab.Column{Name: "one", Head: "of keys in one set", Format: "%.5f"},
		lab.Column{Name: "one_predicted", Head: "predicted", Format: "%.5f"},
		lab.Column{Name: "denied", Head: "difference, keys denied", Format: "%.5f"},
		lab.Column{Name: "estimate", Head: "shared keys, estimated", Format: "%.0f"})
	for i, s := range shapes {
		g := digest.Geometry{Bits: uint64(s.MN * n), Hashes: s.K}
		if err := g.Validate(); err != nil {
			return err
		}
		rng := job.Rand(50 + uint64(i))
		keys, absent := lab.RandomKeys(rng, 2*n-shared), lab.RandomKeys(rng, probes)
		a, b := bitmapOf(g, keys[:n]), bitmapOf(g, keys[n-shared:])
		onlyA := keys[:n-shared]
		union, both := lab.NewBitmap(g.Bits), lab.NewBitmap(g.Bits)
		for i := range a {
			union[i], both[i] = a[i]|b[i], a[i]&b[i]
		}
		m, k := float64(g.Bits), float64(s.K)
		// A shared key sets a position in both arrays, and so do two keys, one from each set.
		apart := -math.Expm1(-k * (n - shared) / m)
		inBoth := 1 - math.Exp(-k*shared/m)*(1-apart*apart)
		share := func(words lab.Bitmap, keys []digest.Key) float64 {
			n := count(keys, func(k digest.Key) bool { return words.HasAll(g.AppendPositions(nil, k)) })
			return lab.Round(float64(n)/float64(len(keys)), 4)
		}
		size := func(words lab.Bitmap) float64 { return -m / k * math.Log1p(-float64(words.Ones())/m) }
		table.Row(s.MN, s.K, share(union, absent), lab.Round(lab.FalsePositives(m/(2*n-shared), k), 4),
			share(both, absent), lab.Round(math.Pow(inBoth, k), 4),
			share(both, onlyA), lab.Round(lab.FalsePositives(s.MN, k), 4),
			share(b, onlyA), lab.Round(size(a)+size(b)-size(union), 6))
	}
	table.Note("The union's array is exactly that of a filter of all keys. The intersection's has more ones than a filter of the shared keys, so it has more false positives. A difference has the keys that are in the first array and not in the second. It denies those keys of the first set that are false positives of the second: a share f of them. Estimated: -m/k·ln of the share of zeros, summed over both arrays, less that of their union.")
	return nil
}

// bloomJoin counts the bytes of a join between two sites. One sends a filter of its table's keys,
// and the other returns the rows whose keys the filter contains.
func bloomJoin(job *lab.Job) error {
	const keys, rows, matching, rowBytes = 100_000, 400_000, 20_000, 100
	table := job.Table(fmt.Sprintf("Bloom join: %d keys at one site, %d rows of %d bytes at the other, of which %d match", keys, rows, rowBytes, matching),
		lab.Column{Name: "sent"},
		lab.Column{Name: "sent_bytes", Head: "bytes sent"},
		lab.Column{Name: "wrong", Head: "returned rows that do not match"},
		lab.Column{Name: "returned_bytes", Head: "bytes returned"},
		lab.Column{Name: "all", Head: "bytes in all"})
	sentKeys := lab.RandomKeys(job.Rand(60), keys)
	otherKeys := lab.RandomKeys(job.Rand(61), rows-matching)
	row := func(name string, sent, wrong int) {
		returned := rowBytes * (matching + wrong)
		table.Row(name, sent, wrong, returned, sent+returned)
	}
	row("nothing: all rows are returned", 0, rows-matching)
	row("keys of 64 bits (a semi-join)", 8*keys, 0)
	best := keys * math.Log2E / (8 * rowBytes * (rows - matching))
	for _, s := range []struct {
		name string
		lab.Shape
	}{
		{"Bloom filter, m/n = 8, 6 hashes", lab.Shape{MN: 8, K: 6}},
		{"Bloom filter, m/n = 16, 11 hashes", lab.Shape{MN: 16, K: 11}},
		{"one hash, f = 1 %, compressed", lab.Shape{MN: lab.ArrayAt(0.01, 1), K: 1}},
		{"one hash, f = 0.1 %, compressed", lab.Shape{MN: lab.ArrayAt(0.001, 1), K: 1}},
		{fmt.Sprintf("one hash, f = %.2g, the best", best), lab.Shape{MN: lab.ArrayAt(best, 1), K: 1}},
		{"one hash, f = 0.001 %, compressed", lab.Shape{MN: lab.ArrayAt(0.00001, 1), K: 1}},
	} {
		f, err := lab.FilterOf(digest.Geometry{Bits: uint64(s.MN * keys), Hashes: s.K}, sentKeys)
		if err != nil {
			return err
		}
		row(s.name, len(f.AppendTo(nil)), count(otherKeys, f.MayContain))
	}
	table.Note("At the best f, another bit a key costs as much as it saves: f = log2(e)·keys/(8·rows that do not match·bytes a row).")
	return nil
}

// planetP counts the peers that an index returns for queries of several terms, and those of them
// that lack a term.
func planetP(ctx context.Context, job *lab.Job, rates []float64) error {
	const peers, terms, queries = 100, 5000, 2000
	table := job.Table(fmt.Sprintf("PlanetP's search: %d peers with %d terms each, %d queries for terms of one peer", peers, terms, queries),
		lab.Column{Name: "rate", Head: "f", Format: "%g"},
		lab.Column{Name: "bytes", Head: "bytes a peer's filter"},
		lab.Column{Name: "terms", Head: "terms of the query"},
		lab.Column{Name: "holders", Head: "peers with all", Format: "%.2f"},
		lab.Column{Name: "wrong", Head: "false candidates", Format: "%.4f"},
		lab.Column{Name: "predicted", Format: "%.4f"},
		lab.Column{Name: "queried", Head: "peers queried, %", Format: "%.1f"})
	cluster := lookupCluster{peers: peers, keys: terms, contents: zipf}
	held := make([][]digest.Key, peers)
	holders := map[digest.Key][]int{} // the peers with a term
	for p := range held {
		held[p] = cluster.keysOf(job, p)
		for _, k := range held[p] {
			holders[k] = append(holders[k], p)
		}
	}
	for _, f := range rates {
		x, bytes, err := planetIndex(held, f)
		if err != nil {
			return err
		}
		for _, size := range []int{1, 2, 3, 5} {
			if err := ctx.Err(); err != nil {
				return err
			}
			rng := job.Rand(70 + uint64(size))
			all, candidates, predicted := 0, 0, 0.0
			var matches []index.Match
			query := make([]digest.Key, size)
			for range queries {
				from := held[rng.IntN(peers)]
				var has [peers]int // how many of the terms each peer has
				for i := range query {
					query[i] = from[rng.IntN(len(from))]
					for _, p := range holders[query[i]] {
						has[p]++
					}
				}
				for _, n := range has {
					if n == size {
						all++
					} else {
						predicted += math.Pow(f, float64(size-n))
					}
				}
				matches = x.AllOf(matches[:0], query)
				candidates += len(matches)
			}
			table.Row(f, bytes/peers, size, float64(all)/queries, float64(candidates-all)/queries, lab.Round(predicted/queries, 4), 100*float64(candidates)/queries/peers)
		}
	}
	table.Note("Peers draw their terms by popularity, x^-%g, from a hundred times as many. Predicted: the sum over the peers of f to the power of the number of terms that they lack.", lookupExponent)
	return nil
}

// planetIndex returns an index of all peers' filters, and how many bytes all the filters take.
func planetIndex(held [][]digest.Key, f float64) (x *index.Index, bytes int, err error) {
	x = index.New()
	for p, keys := range held {
		filter, err := lab.FilterOf(sparse(len(keys), f), keys)
		if err != nil {
			return nil, 0, err
		}
		if err := x.Set(peerName(p), filter); err != nil {
			return nil, 0, err
		}
		bytes += len(filter.AppendTo(nil))
	}
	return x, bytes, nil
}

// aggregated makes filters of unions of caches. An attenuated filter has such a union for each
// link and distance, and an aggregated filter has one for a region.
func aggregated(ctx context.Context, job *lab.Job) error {
	const keys, f = 2000, 1e-3
	table := job.Table(fmt.Sprintf("Attenuated and aggregated filters: unions of u caches of %d objects, one hash", keys),
		lab.Column{Name: "caches", Head: "u"},
		lab.Column{Name: "level", Head: "the union, in a network of 4 links a peer"},
		lab.Column{Name: "distinct", Head: "different objects, % of all", Format: "%.1f"},
		lab.Column{Name: "same_m", Head: "f with the m of one cache, %", Format: "%.2f"},
		lab.Column{Name: "same_m_bits", Head: "bits an object with that m", Format: "%.2f"},
		lab.Column{Name: "same_f_bits", Head: "bits an object with m for f = 0.1 %", Format: "%.2f"},
		lab.Column{Name: "each_bits", Head: "bits an object of u digests", Format: "%.2f"})
	cluster := lookupCluster{peers: 108, keys: keys, contents: zipf}
	union := map[digest.Key]bool{}
	each, done := 0, 0
	for _, u := range []struct {
		caches int
		level  string
	}{{1, "a neighbour"}, {3, "second level of a link"}, {4, "first level, all links"}, {9, "third level of a link"}, {27, "fourth level of a link"}, {108, "fourth level, all links"}} {
		if err := ctx.Err(); err != nil {
			return err
		}
		for ; done < u.caches; done++ {
			own := cluster.keysOf(job, done)
			for _, k := range own {
				union[k] = true
			}
			filter, err := lab.FilterOf(sparse(keys, f), own)
			if err != nil {
				return err
			}
			each += 8 * len(filter.AppendTo(nil))
		}
		all := slices.Collect(maps.Keys(union))
		same, err := lab.FilterOf(sparse(keys, f), all)
		if err != nil {
			return err
		}
		grown, err := lab.FilterOf(sparse(len(all), f), all)
		if err != nil {
			return err
		}
		objects := float64(u.caches * keys)
		table.Row(u.caches, u.level, 100*float64(len(all))/objects, 100*same.FalsePositiveRate(),
			8*float64(len(same.AppendTo(nil)))/objects, 8*float64(len(grown.AppendTo(nil)))/objects, float64(each)/objects)
	}
	table.Note("Caches hold objects of one catalogue, a hundred times as large as a cache, by popularity as in the experiment lookup.")
	return nil
}
