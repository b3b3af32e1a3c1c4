package lab

import "math"

// A Measure is a measured number with half of its confidence interval of 95 %, which is
// zero if it is unknown.
type Measure struct{ Value, Half float64 }

// Counted is the measure of a share, in units of unit: of so many probes, so many were hits.
func Counted(hits, probes, unit float64) Measure {
	p := hits / probes
	return Measure{p / unit, 1.96 * math.Sqrt(p*(1-p)/probes) / unit}
}

// MeanOf is the measure of the mean of independent runs, by Student's t.
func MeanOf(runs []float64) Measure {
	mean, sd := MeanAndError(runs)
	// t for 95 %, by degrees of freedom. From ten on, 1.96·(1+1.2/df) is close enough.
	t := []float64{0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26}
	df := len(runs) - 1
	if df < len(t) {
		return Measure{mean, t[df] * sd}
	}
	return Measure{mean, 1.96 * (1 + 1.2/float64(df)) * sd}
}

// MeanAndError returns the mean of independent values and its standard deviation, which is
// 0 for fewer than two.
func MeanAndError(values []float64) (mean, sd float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / max(1, n-1) / n)
}
