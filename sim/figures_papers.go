package main

import (
	"fmt"
	"math"
)

// hashesFigure is Mitzenmacher's Figure 1 (z/n = 8) or 2 (z/n = 16): f against a continuous k,
// for a filter that is sent uncompressed, and for one whose larger array compresses to as many
// bits.
func hashesFigure(number int, z float64) Figure {
	x := Axis{Label: "hash functions k", Min: 0, Max: 10}
	y := Axis{Label: "false-positive probability f", Min: 0.004, Max: 0.2, Log: true, percent: true}
	if z > 8 {
		x.Max, y.Min, y.Max = 20, 1e-5, 0.1
	}
	compressed := func(k float64) float64 { return falsePositives(arrayFor(z, k), k) }
	standard := func(k float64) float64 { return falsePositives(z, k) }
	var whole []Point
	for k := 1.0; k <= x.Max; k++ {
		if f := compressed(k); f >= y.Min {
			whole = append(whole, Point{k, figures(f, 7)})
		}
	}
	best := bestHashes(z)
	return Figure{
		File:  fmt.Sprintf("mitzenmacher-%d", number),
		Title: fmt.Sprintf("False positives against hash functions, %g bits sent per key", z),
		X:     x.every(x.Max / 10), Y: y.decades(),
		Curves: []Curve{
			{Name: fmt.Sprintf("standard Bloom filter, m/n = %g", z), Points: x.sample(400, 0.2, x.Max, standard)},
			{Name: fmt.Sprintf("compressed, z/n = %g", z), Points: x.sample(400, 0.2, x.Max, compressed)},
			{Name: "compressed, whole k", Points: whole, Marks: true, With: 2},
			{Name: "best standard, worst compressed", Points: []Point{{figures(best, 7), figures(standard(best), 7)}}, Marks: true, With: 7},
		},
	}
}

// arrayFor solves m·H(p) = z for m/n >= z/n, at k hashes. The compressed size grows with m.
func arrayFor(z, k float64) float64 {
	low, high := z, z
	for sentBits(high, k) < z && high < 1e300 {
		high *= 2
	}
	for range 200 {
		if mid := (low + high) / 2; sentBits(mid, k) < z {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// ratioFigure is Figure 4 of Summary Cache: f against m/n, for four hash
// functions and for the best number of them.
func ratioFigure() Figure {
	x := Axis{Label: "bits per key m/n", Min: 0, Max: 32}
	y := Axis{Label: "false-positive probability f", Min: 1e-7, Max: 1, Log: true, percent: true}
	cells, _ := parseSummaryCache(summaryCacheText)
	least := map[float64]float64{}
	var four []Point
	for _, c := range cells {
		f, _ := c.Value.Float64()
		switch {
		case c.K == 0:
			continue
		case c.K == 4:
			four = append(four, Point{c.MN, f})
		}
		if best, seen := least[c.MN]; !seen || f < best {
			least[c.MN] = f
		}
	}
	var best []Point
	for mn := 2.0; mn <= 32; mn++ {
		best = append(best, Point{mn, least[mn]})
	}
	return Figure{
		File:  "summary-cache-4",
		Title: "False positives against bits per key",
		X:     x.every(4), Y: y.decades(),
		Curves: []Curve{
			{Name: "four hash functions", Points: x.sample(300, 0.5, 32, func(mn float64) float64 { return falsePositives(mn, 4) })},
			{Name: "the best number, continuous", Points: x.sample(300, 0.5, 32, func(mn float64) float64 { return math.Pow(0.5, bestHashes(mn)) })},
			{Name: "printed in the table, k = 4", Points: four, Marks: true, With: 1},
			{Name: "the least printed in each row", Points: best, Marks: true, With: 2},
		},
	}
}
