package papers

import (
	"context"
	"fmt"
	"math"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

// hashesFigure is Mitzenmacher's Figure 1 (z/n = 8) or 2 (z/n = 16): f against a continuous k,
// for a filter that is sent uncompressed, and for one whose larger array compresses to as many
// bits.
func hashesFigure(number int, z float64) lab.Figure {
	x := lab.Axis{Label: "hash functions k", Min: 0, Max: 10}
	y := lab.Axis{Label: "false-positive probability f", Min: 0.004, Max: 0.2, Log: true, Percent: true}
	if z > 8 {
		x.Max, y.Min, y.Max = 20, 1e-5, 0.1
	}
	compressed := func(k float64) float64 { return lab.FalsePositives(arrayFor(z, k), k) }
	standard := func(k float64) float64 { return lab.FalsePositives(z, k) }
	var whole []lab.Point
	for k := 1.0; k <= x.Max; k++ {
		if f := compressed(k); f >= y.Min {
			whole = append(whole, lab.Point{X: k, Y: lab.Round(f, 7)})
		}
	}
	best := lab.BestHashes(z)
	return lab.Figure{
		File:  fmt.Sprintf("mitzenmacher-%d", number),
		Title: fmt.Sprintf("False positives against hash functions, %g bits sent per key", z),
		X:     x.Every(x.Max / 10), Y: y.Decades(),
		Curves: []lab.Curve{
			{Name: fmt.Sprintf("standard Bloom filter, m/n = %g", z), Points: x.Sample(400, 0.2, x.Max, standard)},
			{Name: fmt.Sprintf("compressed, z/n = %g", z), Points: x.Sample(400, 0.2, x.Max, compressed)},
			{Name: "compressed, whole k", Points: whole, Marks: true, With: 2},
			{Name: "best standard, worst compressed", Points: []lab.Point{{X: lab.Round(best, 7), Y: lab.Round(standard(best), 7)}}, Marks: true, With: 7},
		},
	}
}

// arrayFor solves m·H(p) = z for m/n >= z/n, at k hashes.
func arrayFor(z, k float64) float64 { return max(z, largestArray(z, k, lab.SentBits)) }

// largestArray is the m/n at which k hashes take z/n bits, which grow with m.
func largestArray(z, k float64, bits func(mn, k float64) float64) float64 {
	low, high := 1e-3, 1.0
	for bits(high, k) < z && high < 1e300 {
		high *= 2
	}
	for range 200 {
		if mid := (low + high) / 2; bits(mid, k) < z {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// ratioFigure is Figure 4 of Summary Cache: f against m/n, for four hash
// functions and for the best number of them.
func ratioFigure() lab.Figure {
	x := lab.Axis{Label: "bits per key m/n", Min: 0, Max: 32}
	y := lab.Axis{Label: "false-positive probability f", Min: 1e-7, Max: 1, Log: true, Percent: true}
	cells, _ := parseSummaryCache(summaryCacheText)
	least := map[float64]float64{}
	var four []lab.Point
	for _, c := range cells {
		f, _ := c.Value.Float64()
		switch {
		case c.K == 0:
			continue
		case c.K == 4:
			four = append(four, lab.Point{X: c.MN, Y: f})
		}
		if best, seen := least[c.MN]; !seen || f < best {
			least[c.MN] = f
		}
	}
	var best []lab.Point
	for mn := 2.0; mn <= 32; mn++ {
		best = append(best, lab.Point{X: mn, Y: least[mn]})
	}
	return lab.Figure{
		File:  "summary-cache-4",
		Title: "False positives against bits per key",
		X:     x.Every(4), Y: y.Decades(),
		Curves: []lab.Curve{
			{Name: "four hash functions", Points: x.Sample(300, 0.5, 32, func(mn float64) float64 { return lab.FalsePositives(mn, 4) })},
			{Name: "the best number, continuous", Points: x.Sample(300, 0.5, 32, func(mn float64) float64 { return math.Pow(0.5, lab.BestHashes(mn)) })},
			{Name: "printed in the table, k = 4", Points: four, Marks: true, With: 1},
			{Name: "the least printed in each row", Points: best, Marks: true, With: 2},
		},
	}
}

// riceBits is the size per key of a one-hash filter that is sent as gaps in the best Rice code:
// low bits plainly, the rest in unary.
func riceBits(f float64) float64 {
	least := math.Inf(1)
	onesPerKey := lab.ArrayAt(f, 1) * f
	for low := 0.0; low < 60; low++ {
		// The mean quotient and the bit that ends it, of gaps that are geometric.
		unary := -1 / math.Expm1(math.Exp2(low)*math.Log1p(-f))
		least = min(least, onesPerKey*(low+unary))
	}
	return least
}

// cuckooBits is the size of a cuckoo filter: buckets of four, 95 % full, of which a lookup
// compares eight fingerprints.
func cuckooBits(f float64) float64 { return (math.Log2(1/f) + 3) / 0.95 }

// sizesFigure compares representations of a set with a false-positive rate, and marks the
// sizes that the packages reach with real keys.
func sizesFigure(ctx context.Context, job *lab.Job) (lab.Figure, error) {
	x := lab.Axis{Label: "false-positive probability f", Min: 1e-5, Max: 0.1, Log: true, Percent: true}
	y := lab.Axis{Label: "bits sent per key, z/n", Min: 0, Max: 26}
	compressed := func(k float64) func(f float64) float64 {
		return func(f float64) float64 { return lab.SentBits(lab.ArrayAt(f, k), k) }
	}
	rates := []float64{0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003, 0.00001}
	one, three := make([]lab.Point, len(rates)), make([]lab.Point, len(rates))
	err := job.Each(ctx, 2*len(rates), "filters coded", func(i int) error {
		points, k, f := one, 1, rates[i/2]
		if i%2 == 1 {
			points, k = three, 3
		}
		kind := filterKind{mn: lab.ArrayAt(f, float64(k)), k: k}
		m, err := kind.measure(job.Source(3, uint64(i)), 1, 0)
		points[i/2] = lab.Point{X: f, Y: lab.Round(m.sent.Value, 6)}
		return err
	})
	return lab.Figure{
		File:  "sizes",
		Title: "Bits sent per key against false positives",
		X:     x.Decades(), Y: y.Every(2),
		Curves: []lab.Curve{
			{Name: "information bound, log2 1/f", Points: x.Sample(200, x.Min, x.Max, func(f float64) float64 { return math.Log2(1 / f) })},
			{Name: "Bloom filter, best whole k, uncompressed", Points: x.Sample(400, x.Min, x.Max, lab.BloomBits)},
			{Name: "one hash, m = n/f, compressed (ours)", Points: x.Sample(200, x.Min, x.Max, compressed(1))},
			{Name: "three hashes, compressed", Points: x.Sample(200, x.Min, x.Max, compressed(3))},
			{Name: "cuckoo filter, 4 slots, 95 % full", Points: x.Sample(200, x.Min, x.Max, cuckooBits)},
			{Name: "one hash, gaps in Rice code", Points: x.Sample(400, x.Min, x.Max, riceBits)},
			{Name: "coded by package arith, n = 10,000", Points: one, Marks: true, With: 3},
			{Points: three, Marks: true, With: 4},
			{Name: "Squid's digests, 5 bits, 4 hashes", Points: []lab.Point{{X: lab.Round(lab.FalsePositives(5, 4), 7), Y: 5}}, Marks: true, With: 7},
		},
	}, err
}

// deltaBound is about the least size of a delta per replaced key: it must say which of the old
// keys left, and it adds a set of new keys that has a rate of c·f.
func deltaBound(f, c float64) float64 {
	return math.Log2(1/(c*f)) + lab.Entropy(c)/c
}

// deltasFigure compares the cost of updates per replaced key, at one false-positive rate.
func deltasFigure(ctx context.Context, job *lab.Job) (lab.Figure, error) {
	const f = 0.001
	x := lab.Axis{Label: "share of the keys replaced since the last update, c", Min: 0.0005, Max: 0.5, Log: true, Percent: true}
	y := lab.Axis{Label: "bits sent per replaced key, z/(cn)", Min: 10, Max: 1000, Log: true}
	perReplaced := func(k float64, bits func(mn, k, c float64) float64) func(c float64) float64 {
		return func(c float64) float64 { return bits(lab.ArrayAt(f, k), k, c) / c }
	}
	best := float64(lab.BestInteger(lab.ArrayAt(f, 10)))
	shares := []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3}
	points := make([]lab.Point, len(shares))
	err := job.Each(ctx, len(shares), "deltas coded", func(i int) error {
		bits, err := deltaSize(job, i, f, shares[i])
		points[i] = lab.Point{X: shares[i], Y: lab.Round(bits, 6)}
		return err
	})
	y = y.Decades()
	y.Ticks = []float64{10, 20, 50, 100, 200, 500, 1000}
	return lab.Figure{
		File:  "deltas",
		Title: "Bits per replaced key against the share replaced, f = 0.1 %",
		X:     x.Decades(), Y: y,
		Curves: []lab.Curve{
			{Name: "about the information bound", Points: x.Sample(200, x.Min, x.Max, func(c float64) float64 { return deltaBound(f, c) })},
			{Name: "Bloom filter of least memory, 32-bit records", Points: x.Sample(200, x.Min, x.Max, func(c float64) float64 {
				mn := lab.ArrayAt(f, best)
				return -64 * mn * lab.Zeros(mn, best) * math.Expm1(-c*best/mn) / c
			})},
			{Name: "one hash, coded against the old set (ours)", Points: x.Sample(200, x.Min, x.Max, perReplaced(1, lab.GivenBits))},
			{Name: "two hashes, m/n = 62, XOR coded", Points: x.Sample(200, x.Min, x.Max, perReplaced(2, lab.DeltaBits))},
			{Name: "Bloom filter of least memory, XOR coded", Points: x.Sample(200, x.Min, x.Max, perReplaced(best, lab.DeltaBits))},
			{Name: "one hash, XOR coded", Points: x.Sample(200, x.Min, x.Max, perReplaced(1, lab.DeltaBits))},
			{Name: "one hash, the whole filter anew", Points: x.Sample(200, x.Min, x.Max, func(c float64) float64 { return lab.SentBits(lab.ArrayAt(f, 1), 1) / c })},
			{Name: "coded by package digest, n = 1,000,000", Points: points, Marks: true, With: 3},
		},
	}, err
}

// deltaSize replaces a share c of a million keys of a one-hash digest, and returns the
// bits per replaced key of the delta, without header and checksum.
func deltaSize(job *lab.Job, i int, f, c float64) (float64, error) {
	const n = 1_000_000
	rng := job.Source(4, uint64(i))
	held, keys, base, err := lab.Filled(digest.Geometry{Bits: uint64(math.Round(lab.ArrayAt(f, 1) * n)), Hashes: 1}, rng, n)
	if err != nil {
		return 0, err
	}
	changed := int(math.Round(c * n))
	lab.ReplaceKeys(held, rng, keys[:changed])
	_, d := held.AdvanceDelta()
	coded, err := d.AppendBare(nil, base)
	return 8 * float64(len(coded)) / float64(changed), err
}
