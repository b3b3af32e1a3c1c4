package main

import (
	"context"
	"math"

	"github.com/summarycache/summarycache/digest"
)

// bloomBits is the size of the smallest array with rate f, over all whole k.
func bloomBits(f float64) float64 {
	least := math.Inf(1)
	for k := 1.0; k <= 64; k++ {
		least = min(least, arrayAt(f, k))
	}
	return least
}

// riceBits is the size per key of a one-hash filter that is sent as gaps in the best Rice code:
// low bits plainly, the rest in unary.
func riceBits(f float64) float64 {
	least := math.Inf(1)
	onesPerKey := arrayAt(f, 1) * f
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
func sizesFigure(ctx context.Context, job *Job) (Figure, error) {
	x := Axis{Label: "false-positive probability f", Min: 1e-5, Max: 0.1, Log: true, percent: true}
	y := Axis{Label: "bits sent per key, z/n", Min: 0, Max: 26}
	compressed := func(k float64) func(f float64) float64 {
		return func(f float64) float64 { return sentBits(arrayAt(f, k), k) }
	}
	rates := []float64{0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003, 0.00001}
	one, three := make([]Point, len(rates)), make([]Point, len(rates))
	err := job.each(ctx, 2*len(rates), "filters coded", func(i int) error {
		points, k, f := one, 1, rates[i/2]
		if i%2 == 1 {
			points, k = three, 3
		}
		kind := filterKind{mn: arrayAt(f, float64(k)), k: k}
		m, err := kind.measure(job.source(3, uint64(i)), 1, 0)
		points[i/2] = Point{f, figures(m.sent.value, 6)}
		return err
	})
	return Figure{
		File:  "sizes",
		Title: "Bits sent per key against false positives",
		X:     x.decades(), Y: y.every(2),
		Curves: []Curve{
			{Name: "information bound, log2 1/f", Points: x.sample(200, x.Min, x.Max, func(f float64) float64 { return math.Log2(1 / f) })},
			{Name: "Bloom filter, best whole k, uncompressed", Points: x.sample(400, x.Min, x.Max, bloomBits)},
			{Name: "one hash, m = n/f, compressed (ours)", Points: x.sample(200, x.Min, x.Max, compressed(1))},
			{Name: "three hashes, compressed", Points: x.sample(200, x.Min, x.Max, compressed(3))},
			{Name: "cuckoo filter, 4 slots, 95 % full", Points: x.sample(200, x.Min, x.Max, cuckooBits)},
			{Name: "one hash, gaps in Rice code", Points: x.sample(400, x.Min, x.Max, riceBits)},
			{Name: "coded by package arith, n = 10,000", Points: one, Marks: true, With: 3},
			{Points: three, Marks: true, With: 4},
			{Name: "Squid's digests, 5 bits, 4 hashes", Points: []Point{{figures(falsePositives(5, 4), 7), 5}}, Marks: true, With: 7},
		},
	}, err
}

// deltaBound is about the least size of a delta per replaced key: it must say which of the old
// keys left, and it adds a set of new keys that has a rate of c·f.
func deltaBound(f, c float64) float64 {
	return math.Log2(1/(c*f)) + entropy(c)/c
}

// deltasFigure compares the cost of updates per replaced key, at one false-positive rate.
func deltasFigure(ctx context.Context, job *Job) (Figure, error) {
	const f = 0.001
	x := Axis{Label: "share of the keys replaced since the last update, c", Min: 0.0005, Max: 0.5, Log: true, percent: true}
	y := Axis{Label: "bits sent per replaced key, z/(cn)", Min: 10, Max: 1000, Log: true}
	perReplaced := func(k float64, bits func(mn, k, c float64) float64) func(c float64) float64 {
		return func(c float64) float64 { return bits(arrayAt(f, k), k, c) / c }
	}
	best := float64(bestInteger(arrayAt(f, 10)))
	shares := []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3}
	points := make([]Point, len(shares))
	err := job.each(ctx, len(shares), "deltas coded", func(i int) error {
		bits, err := deltaSize(job, i, f, shares[i])
		points[i] = Point{shares[i], figures(bits, 6)}
		return err
	})
	y = y.decades()
	y.Ticks = []float64{10, 20, 50, 100, 200, 500, 1000}
	return Figure{
		File:  "deltas",
		Title: "Bits per replaced key against the share replaced, f = 0.1 %",
		X:     x.decades(), Y: y,
		Curves: []Curve{
			{Name: "about the information bound", Points: x.sample(200, x.Min, x.Max, func(c float64) float64 { return deltaBound(f, c) })},
			{Name: "Bloom filter of least memory, 32-bit records", Points: x.sample(200, x.Min, x.Max, func(c float64) float64 {
				mn := arrayAt(f, best)
				return -64 * mn * zeros(mn, best) * math.Expm1(-c*best/mn) / c
			})},
			{Name: "one hash, coded against the old set (ours)", Points: x.sample(200, x.Min, x.Max, perReplaced(1, givenBits))},
			{Name: "two hashes, m/n = 62, XOR coded", Points: x.sample(200, x.Min, x.Max, perReplaced(2, deltaBits))},
			{Name: "Bloom filter of least memory, XOR coded", Points: x.sample(200, x.Min, x.Max, perReplaced(best, deltaBits))},
			{Name: "one hash, XOR coded", Points: x.sample(200, x.Min, x.Max, perReplaced(1, deltaBits))},
			{Name: "one hash, the whole filter anew", Points: x.sample(200, x.Min, x.Max, func(c float64) float64 { return sentBits(arrayAt(f, 1), 1) / c })},
			{Name: "coded by package digest, n = 1,000,000", Points: points, Marks: true, With: 3},
		},
	}, err
}

// deltaSize replaces a share c of a million keys of a one-hash digest, and returns the
// bits per replaced key of the delta, without header and checksum.
func deltaSize(job *Job, i int, f, c float64) (float64, error) {
	const n = 1_000_000
	rng := job.source(4, uint64(i))
	held, keys, base, err := filled(digest.Geometry{Bits: uint64(math.Round(arrayAt(f, 1) * n)), Hashes: 1}, rng, n)
	if err != nil {
		return 0, err
	}
	changed := int(math.Round(c * n))
	replaceKeys(held, rng, keys[:changed])
	_, d := held.AdvanceDelta()
	coded, err := d.AppendBare(nil, base)
	return 8 * float64(len(coded)) / float64(changed), err
}
