package sibling

import (
	"math"
	"time"
)

// An average is an exponentially weighted moving average.
type average struct {
	value float64
	known bool
}

const averageGain = 1.0 / 8 // as TCP smooths round trips (RFC 6298)

func (a *average) add(v float64) {
	if !a.known {
		a.value, a.known = v, true
		return
	}
	a.value += averageGain * (v - a.value)
}

// A histogram counts durations in quarters of an octave. Older ones have less weight.
type histogram struct {
	counts [64]uint16
	total  int
}

const (
	histogramFrom = 50 * time.Microsecond
	histogramFull = 256 // durations at which all counts are halved
	enough        = 8   // durations that a quantile needs
)

func (h *histogram) add(d time.Duration) {
	i := 0
	if d > histogramFrom {
		i = min(int(4*math.Log2(float64(d)/float64(histogramFrom))), len(h.counts)-1)
	}
	h.counts[i]++
	if h.total++; h.total < histogramFull {
		return
	}
	h.total = 0
	for i := range h.counts {
		h.counts[i] /= 2
		h.total += int(h.counts[i])
	}
}

// quantile returns the upper bound of the quarter octave that contains the quantile q.
func (h *histogram) quantile(q float64) (time.Duration, bool) {
	if h.total < enough {
		return 0, false
	}
	rest := q * float64(h.total)
	for i, n := range h.counts {
		if rest -= float64(n); rest <= 0 {
			return time.Duration(float64(histogramFrom) * math.Exp2(float64(i+1)/4)), true
		}
	}
	return time.Duration(math.MaxInt64), true
}
