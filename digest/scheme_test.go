package digest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// schemeGeometries are every scheme at the geometries of the paper's tables, for
// 10,000 keys.
func schemeGeometries() []Geometry {
	var all []Geometry
	for _, g := range []Geometry{
		{Bits: 80_000, Hashes: 5}, {Bits: 140_000, Hashes: 2}, {Bits: 480_000, Hashes: 3},
		{Bits: 160_000, Hashes: 11}, {Bits: 920_000, Hashes: 1}, {Bits: 70_000, Hashes: 1},
	} {
		for g.Scheme = Double; g.Scheme <= lastScheme; g.Scheme++ {
			fit := g
			for fit.Validate() != nil {
				fit.Bits++
			}
			all = append(all, fit)
		}
	}
	return all
}

// TestFalsePositiveRate: of every scheme and geometry, the false positives are
// within four standard deviations of what the filter's fill says, and the fill
// within four of what the geometry says.
func TestFalsePositiveRate(t *testing.T) {
	for _, g := range schemeGeometries() {
		t.Run(g.String(), func(t *testing.T) {
			const n, trials = 10_000, 100_000
			r := random(g.Bits + uint64(g.Scheme))
			f := counting(t, g, randomKeys(r, n)...).Advance()
			hits := 0
			for range trials {
				if f.MayContain(Key(r.Uint64())) {
					hits++
				}
			}
			p := f.FalsePositiveRate()
			if off := (float64(hits) - trials*p) / math.Sqrt(trials*p*(1-p)); math.Abs(off) > 4 {
				t.Errorf("%d false positives of %d, %.1f standard deviations from %.6f", hits, trials, off, p)
			}
			fill, predicted := g.Predict(n)
			got := float64(f.Count()) / float64(g.Bits)
			if spread := math.Sqrt(fill * (1 - fill) / float64(g.Bits)); math.Abs(got-fill) > 4*spread {
				t.Errorf("fill %.5f, predicted %.5f±%.5f", got, fill, spread)
			}
			if math.Abs(p/predicted-1) > 0.1 {
				t.Errorf("rate %.6f, predicted %.6f", p, predicted)
			}
			if got := f.EstimateKeys(); math.Abs(got/n-1) > 0.05 {
				t.Errorf("EstimateKeys = %.0f", got)
			}
		})
	}
}

// TestPositionsAreUniform: a chi-square of where keys fall, for every scheme and
// each of its hashes.
func TestPositionsAreUniform(t *testing.T) {
	for _, g := range schemeGeometries() {
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

// TestSchemesFromTheBook computes every scheme's positions as the documents write
// them down, with big steps and slow arithmetic.
func TestSchemesFromTheBook(t *testing.T) {
	reduce := func(h, m uint64) uint64 {
		// floor(h·m/2^64) by halves.
		high, low := h>>32, h&(1<<32-1)
		return (high*m + low*m>>32) >> 32
	}
	for _, g := range schemeGeometries() {
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
