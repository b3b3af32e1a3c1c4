package main

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/summarycache/summarycache/arith"
)

// sizes are the results of one trial.
type sizes struct {
	coded   uint32 // bytes of the filter, or of the exclusive-or
	context uint32 // bytes of the delta coded against the old filter
	ones    uint32 // ones of the coded array
}

// trial draws one filter, or a filter and its successor, and codes it.
func (s simulation) trial(rng rand.Source) (z sizes) {
	positions := make([]uint64, s.n*uint64(s.k)) // k for each key
	for i := range positions {
		positions[i] = below(rng, s.m)
	}
	array := newBitmap(s.m)
	array.set(positions...)
	if s.c > 0 {
		next := newBitmap(s.m)
		for i := range uint64(math.Round(s.c*float64(s.n))) * uint64(s.k) {
			positions[i] = below(rng, s.m)
		}
		next.set(positions...)
		z.context = codedAgainst(array, next, s.m)
		for i := range array {
			array[i] ^= next[i]
		}
	}
	z.ones = array.ones()
	z.coded = uint32(len(arith.AppendBitmap(nil, arith.Adaptive, s.m, array)))
	return z
}

// codedAgainst returns the size in bytes of a delta: the ranks of the old zeros that became
// ones, and those of the old ones that became zeros.
func codedAgainst(before, after bitmap, m uint64) uint32 {
	var sets, clears []uint64
	ones := uint64(0) // in the words before
	for i, old := range before {
		for flips := old ^ after[i]; flips != 0; flips &= flips - 1 {
			bit := uint64(bits.TrailingZeros64(flips))
			rank := ones + uint64(bits.OnesCount64(old&(1<<bit-1)))
			if old>>bit&1 == 1 {
				clears = append(clears, rank)
			} else {
				sets = append(sets, uint64(i)*64+bit-rank)
			}
		}
		ones += uint64(bits.OnesCount64(old))
	}
	code := arith.AppendSet(nil, arith.Adaptive, m-ones, sets)
	return uint32(len(arith.AppendSet(code, arith.Adaptive, ones, clears)))
}
