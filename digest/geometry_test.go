package digest

import (
	"errors"
	"testing"
)

// TestGeometryFor: the rate is kept, by next to no more bits than that takes.
func TestGeometryFor(t *testing.T) {
	const keys = 100_000
	for _, rate := range []float64{0.3, 0.02, 1e-3, 1e-6} {
		g, err := GeometryFor(keys, rate)
		if err != nil || g.Validate() != nil || g.Hashes != 1 || g.Bits%1024 != 0 {
			t.Fatalf("GeometryFor(%d, %v) = %v, %v", keys, rate, g, err)
		}
		fewer := g
		fewer.Bits -= 1024
		_, kept := g.Predict(keys)
		if _, broken := fewer.Predict(keys); kept > rate || broken <= rate {
			t.Errorf("GeometryFor(%d, %v) = %v of %v, and %v of %v would do", keys, rate, g, kept, fewer, broken)
		}
	}
}

func TestGeometryForRefuses(t *testing.T) {
	for _, c := range []struct {
		keys uint64
		rate float64
		want error
	}{
		{0, 0.1, ErrGeometry}, {1, 0, ErrGeometry}, {1, 1, ErrGeometry}, {1, -1, ErrGeometry}, {1 << 40, 1e-9, ErrTooLarge},
	} {
		if g, err := GeometryFor(c.keys, c.rate); !errors.Is(err, c.want) || g != (Geometry{}) {
			t.Errorf("GeometryFor(%d, %v) = %v, %v, want %v", c.keys, c.rate, g, err, c.want)
		}
	}
}
