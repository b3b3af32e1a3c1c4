package digest

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
)

// schemeGeometries has every scheme at the geometries of the papers' tables and ours, for n
// keys. m is a little larger if a scheme needs a prime or a multiple.
func schemeGeometries(n uint64) []Geometry {
	var all []Geometry
	for _, g := range []Geometry{
		{Bits: 8, Hashes: 5}, {Bits: 14, Hashes: 2}, {Bits: 48, Hashes: 3},
		{Bits: 16, Hashes: 11}, {Bits: 92, Hashes: 1}, {Bits: 7, Hashes: 1}, {Bits: 1000, Hashes: 1},
	} {
		for g.Scheme = Double; g.Scheme <= lastScheme; g.Scheme++ {
			fit := g
			for fit.Bits *= n; fit.Validate() != nil; {
				fit.Bits++
			}
			all = append(all, fit)
		}
	}
	return all
}

var rateKeys = flag.Int("rate-keys", 10_000, "keys in the filters of TestFalsePositiveRate")

// TestFalsePositiveRate: for every scheme and geometry, the false positives are within four
// standard deviations of the rate that follows from the filter's fill, and of the one that the
// geometry predicts for so many keys. The fill is within four of the prediction, too. Use
// -rate-keys 1000000 for filters as large as those of a cache.
func TestFalsePositiveRate(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	for _, g := range schemeGeometries(uint64(*rateKeys)) {
		t.Run(g.String(), func(t *testing.T) {
			n, trials := *rateKeys, 10*float64(max(10_000, *rateKeys/5))
			r := random(g.Bits + uint64(g.Scheme))
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
			fill, predicted := g.Predict(uint64(n))
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

// TestPositionsAreUniform is a chi-square test of the positions of keys, for every scheme and
// each of its hashes.
func TestPositionsAreUniform(t *testing.T) {
	if testing.Short() {
		t.Skip("counts positions in one goroutine")
	}
	for _, g := range schemeGeometries(10_000) {
		const cells, n = 64, 64_000
		counts := make([][cells]float64, g.Hashes)
		var buf [MaxHashes]uint64
		r := random(11)
		for range n {
			for i, p := range g.draws(&buf, Key(r.Uint64())) {
				if g.scheme().parted() {
					part := g.Bits / uint64(g.Hashes)
					p = (p - uint64(i)*part) * uint64(g.Hashes)
				}
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

// TestSchemesFromTheBook computes every scheme's positions by the formulas of the documents,
// with slow arithmetic.
func TestSchemesFromTheBook(t *testing.T) {
	reduce := func(h, m uint64) uint64 {
		// floor(h·m/2^64) by halves.
		high, low := h>>32, h&(1<<32-1)
		return (high*m + low*m>>32) >> 32
	}
	for _, g := range schemeGeometries(10_000) {
		for _, k := range randomKeys(random(5), 50) {
			h := uint64(k)
			var want []uint64
			for i := range uint64(g.Hashes) {
				part := g.Bits / uint64(g.Hashes)
				own := h
				if i > 0 {
					own = mix(h + i*golden)
				}
				second := mix(h + golden)
				cube := (i*i*i - i) / 6
				var p uint64
				switch g.scheme() {
				case Double:
					p = reduce(h+i*(second|1), g.Bits)
				case EnhancedDouble:
					p = (reduce(h, g.Bits) + i*reduce(second, g.Bits) + cube) % g.Bits
				case Independent:
					p = reduce(own, g.Bits)
				case Partitioned:
					p = i*part + reduce(own, part)
				case TwoModPrime:
					p = i*part + (reduce(h, part)+i*reduce(second, part))%part
				}
				if !slices.Contains(want, p) {
					want = append(want, p)
				}
			}
			var buf [MaxHashes]uint64
			if got := g.positions(&buf, k); !slices.Equal(got, want) {
				t.Fatalf("%v: positions of %016x = %v, want %v", g, h, got, want)
			}
		}
	}
}

func TestGeometryValidate(t *testing.T) {
	for _, g := range []Geometry{
		{}, {Bits: 1}, {Hashes: 1}, {Bits: MaxBits + 1, Hashes: 1}, {Bits: 1, Hashes: MaxHashes + 1},
		{Bits: 1, Hashes: -1}, {Bits: 8, Hashes: 1, Scheme: lastScheme + 1},
		{Bits: 100, Hashes: 3, Scheme: Partitioned}, {Bits: 12, Hashes: 3, Scheme: TwoModPrime},
	} {
		if err := g.Validate(); !errors.Is(err, ErrGeometry) {
			t.Errorf("Validate(%+v) = %v", g, err)
		}
		if _, err := NewCountingFilter(g, 1); !errors.Is(err, ErrGeometry) {
			t.Errorf("NewCountingFilter(%+v) = %v", g, err)
		}
	}
	if got, want := fmt.Sprint(Geometry{Bits: 9, Hashes: 2}), "m=9 k=2 double"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
}
