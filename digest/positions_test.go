package digest

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
)

// paperGeometries has the geometries of the papers' tables and ours, for n keys.
func paperGeometries(n uint64) []Geometry {
	var all []Geometry
	for _, g := range []Geometry{
		{Bits: 8, Hashes: 5}, {Bits: 14, Hashes: 2}, {Bits: 48, Hashes: 3},
		{Bits: 16, Hashes: 11}, {Bits: 92, Hashes: 1}, {Bits: 7, Hashes: 1}, {Bits: 1000, Hashes: 1},
	} {
		g.Bits *= n
		all = append(all, g)
	}
	return all
}

var rateKeys = flag.Int("rate-keys", 10_000, "keys in the filters of TestFalsePositiveRate")

// TestFalsePositiveRate: for every geometry, the false positives are within four
// standard deviations of the rate that follows from the filter's fill, and of the one that the
// geometry predicts for so many keys. The fill is within four of the prediction, too. Use
// -rate-keys 1000000 for filters as large as those of a cache.
func TestFalsePositiveRate(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	for _, g := range paperGeometries(uint64(*rateKeys)) {
		t.Run(g.String(), func(t *testing.T) {
			n, trials := *rateKeys, 10*float64(max(10_000, *rateKeys/5))
			r := random(g.Bits)
			c := counting(t, g)
			for _, k := range randomKeys(r, n) {
				c.Add(k)
			}
			f := c.Advance()
			hits := 0.0
			for range int(trials) {
				if f.MayContain(Key(r.Uint64())) {
					hits++
				}
			}
			p := f.FalsePositiveRate()
			sd := math.Sqrt(trials * p * (1 - p))
			if off := (hits - trials*p) / sd; math.Abs(off) > 4 {
				t.Errorf("%.0f false positives of %.0f, %.1f standard deviations from %.6f", hits, trials, off, p)
			}
			fill, predicted := g.predict(uint64(n))
			got := float64(f.Ones()) / float64(g.Bits)
			spread := math.Sqrt(fill * (1 - fill) / float64(g.Bits)) // or less
			if math.Abs(got-fill) > 4*spread {
				t.Errorf("fill %.5f, predicted %.5f±%.5f", got, fill, spread)
			}
			// The rate is the fill's k-th power, and varies with it.
			k := float64(g.Hashes)
			sd = math.Hypot(sd, trials*k*predicted/fill*spread)
			if off := (hits - trials*predicted) / sd; math.Abs(off) > 4 {
				t.Errorf("%.0f false positives of %.0f, %.1f standard deviations from the predicted %.6f", hits, trials, off, predicted)
			}
		})
	}
}

// TestPositionsAreUniform is a chi-square test of the positions of keys, for each of their hashes.
func TestPositionsAreUniform(t *testing.T) {
	if testing.Short() {
		t.Skip("counts positions in one goroutine")
	}
	for _, g := range paperGeometries(10_000) {
		const cells, n = 64, 64_000
		counts := make([][cells]float64, g.Hashes)
		var buf [maxHashes]uint64
		r := random(11)
		for range n {
			for i, p := range g.draws(&buf, Key(r.Uint64())) {
				counts[i][p*cells/g.Bits]++
			}
		}
		for i := range counts {
			chi := 0.0
			for _, c := range counts[i] {
				chi += (c - n/cells) * (c - n/cells) / (n / cells)
			}
			// Mean 63, standard deviation √126; the cells differ by a position.
			if off := (chi - (cells - 1)) / math.Sqrt(2*(cells-1)); off > 5 {
				t.Errorf("%v: hash %d has chi-square %.0f, %.1f standard deviations too much", g, i, chi, off)
			}
		}
	}
}

// TestPositionsFromTheBook computes positions by the formula of FORMAT.md, with slow arithmetic.
func TestPositionsFromTheBook(t *testing.T) {
	reduce := func(h, m uint64) uint64 {
		// floor(h·m/2^64) by halves.
		high, low := h>>32, h&(1<<32-1)
		return (high*m + low*m>>32) >> 32
	}
	for _, g := range paperGeometries(10_000) {
		for _, k := range randomKeys(random(5), 50) {
			h := uint64(k)
			var want []uint64
			for i := range uint64(g.Hashes) {
				p := reduce(h+i*(mix(h+golden)|1), g.Bits)
				if !slices.Contains(want, p) {
					want = append(want, p)
				}
			}
			var buf [maxHashes]uint64
			if got := g.positions(&buf, k); !slices.Equal(got, want) {
				t.Fatalf("%v: positions of %016x = %v, want %v", g, h, got, want)
			}
		}
	}
}

func TestGeometryValidate(t *testing.T) {
	for _, g := range []Geometry{
		{}, {Bits: 1}, {Hashes: 1}, {Bits: maxBits + 1, Hashes: 1}, {Bits: 1, Hashes: maxHashes + 1},
		{Bits: 1, Hashes: -1},
	} {
		if err := g.validate(); !errors.Is(err, errGeometry) {
			t.Errorf("Validate(%+v) = %v", g, err)
		}
		if _, err := NewCountingFilter(g, 1); !errors.Is(err, errGeometry) {
			t.Errorf("NewCountingFilter(%+v) = %v", g, err)
		}
	}
	if got, want := fmt.Sprint(Geometry{Bits: 9, Hashes: 2}), "m=9 k=2"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}
