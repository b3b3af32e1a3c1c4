package lab

import (
	"math"
	"testing"
)

// The interval of the mean of few runs is wider than the deviation suggests.
func TestMeanOf(t *testing.T) {
	if m := MeanOf([]float64{1, 3}); m.Value != 2 || math.Abs(m.Half-12.71) > 1e-9 {
		t.Errorf("of two: %v", m)
	}
	if m := MeanOf([]float64{7}); m != (Measure{Value: 7}) {
		t.Errorf("of one: %v", m)
	}
	// Of the intervals of samples, 19 of 20 contain the known mean.
	job, in := Quiet(1), 0
	rng := job.Rand(1)
	for range 2000 {
		runs := make([]float64, 5)
		for i := range runs {
			runs[i] = rng.NormFloat64()
		}
		if m := MeanOf(runs); math.Abs(m.Value) < m.Half {
			in++
		}
	}
	if in < 1860 || in > 1940 { // 1900, with a deviation of 10
		t.Errorf("%d of 2000 intervals have the mean", in)
	}
}
