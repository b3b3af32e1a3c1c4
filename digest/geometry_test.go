package digest

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// TestGeometryFor: the rate is reached, with hardly more bits than necessary.
func TestGeometryFor(t *testing.T) {
	const keys = 100_000
	for _, rate := range []float64{0.3, 0.02, 1e-3, 1e-6} {
		g, err := GeometryFor(keys, rate)
		if err != nil || g.validate() != nil || g.Hashes != 1 || g.Bits%1024 != 0 {
			t.Fatalf("GeometryFor(%d, %v) = %v, %v", keys, rate, g, err)
		}
		fewer := g
		fewer.Bits -= 1024
		_, kept := g.predict(keys)
		if _, broken := fewer.predict(keys); kept > rate || broken <= rate {
			t.Errorf("GeometryFor(%d, %v) = %v of %v, and %v of %v would do", keys, rate, g, kept, fewer, broken)
		}
	}
}

// TestGeometryForMany: where one hash takes too many bits, a second one does.
func TestGeometryForMany(t *testing.T) {
	for _, c := range []struct {
		keys uint64
		rate float64
	}{{100_000_000, 1e-6}, {1_000_000_000, 1e-5}} {
		g, err := GeometryFor(c.keys, c.rate)
		if _, rate := g.predict(c.keys); err != nil || g.Hashes != 2 || g.validate() != nil || rate > c.rate || rate < c.rate*0.999 {
			t.Errorf("GeometryFor(%d, %v) = %v of %v, %v", c.keys, c.rate, g, rate, err)
		}
	}
}

func TestGeometryForRefuses(t *testing.T) {
	for _, c := range []struct {
		keys uint64
		rate float64
		want error
	}{
		{0, 0.1, errGeometry}, {1, 0, errGeometry}, {1, 1, errGeometry}, {1, -1, errGeometry}, {1 << 40, 1e-9, ErrTooLarge},
	} {
		if g, err := GeometryFor(c.keys, c.rate); !errors.Is(err, c.want) || g != (Geometry{}) {
			t.Errorf("GeometryFor(%d, %v) = %v, %v, want %v", c.keys, c.rate, g, err, c.want)
		}
	}
}

// TestSmallFiltersOfManyHashes: with double hashing and few keys there are more false positives
// than the fill's k-th power, as many as predicted.
func TestSmallFiltersOfManyHashes(t *testing.T) {
	if testing.Short() {
		t.Skip("counts false positives in one goroutine")
	}
	for _, c := range []struct {
		n       int
		k       int
		perKey  float64
		noticed float64 // how many times the k-th power the rate is, about
	}{
		{30, 8, 12, 1.3}, {100, 4, 6, 1}, {100, 8, 12, 1.1}, {100, 8, 17, 1.3}, {100, 11, 16, 1.4}, {100, 16, 23, 6}, {1_000, 8, 17, 1},
	} {
		g := Geometry{Bits: uint64(float64(c.n) * c.perKey), Hashes: c.k}
		fill, rate := g.predict(uint64(c.n))
		power := math.Pow(fill, float64(c.k))
		if got := rate / power; math.Abs(got/c.noticed-1) > 0.1 {
			t.Errorf("n=%d, %v: predicted %.2f times the power, want about %.2f", c.n, g, got, c.noticed)
		}
		r := random(uint64(c.n)<<8 | uint64(c.k))
		hits, trials := 0.0, 0.0
		var filters, perFilter = 0.0, 20 * c.n
		for hits < 1_000 {
			f, _ := FilterOf(g, Version{Epoch: 1}, slices.Values(randomKeys(r, c.n)))
			for range perFilter {
				if f.MayContain(Key(r.Uint64())) {
					hits++
				}
			}
			filters++
			trials += float64(perFilter)
		}
		// A filter's own rate strays from the mean as its fill does.
		spread := math.Sqrt(fill*(1-fill)/float64(g.Bits)) * float64(c.k) / fill / math.Sqrt(filters)
		sd := math.Hypot(math.Sqrt(hits), hits*spread)
		if off := math.Abs(hits - rate*trials); off > 4*sd+0.25*(rate-power)*trials {
			t.Errorf("n=%d, %v: %.3g of all are false positives, predicted %.3g; the power is %.3g", c.n, g, hits/trials, rate, power)
		}
	}
}
