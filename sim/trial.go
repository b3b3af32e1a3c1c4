package main

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/summarycache/summarycache/arith"
)

// scratch holds the arrays of one trial, and its result.
type scratch struct {
	before, after bitmap   // of m bits
	positions     []uint64 // of every key, k each
	sets, clears  []uint64
	bytes         []byte

	coded, context, ones uint32
}

// trial draws one filter, or a filter and its successor, and codes it.
func (s simulation) trial(t *scratch, rng rand.Source) {
	t.after = t.after.emptied(s.m)
	if s.c == 0 {
		for range s.n * uint64(s.k) {
			t.after.set(below(rng, s.m))
		}
		t.ones = t.after.ones()
		t.coded = t.code(s.m)
		return
	}

	t.before = t.before.emptied(s.m)
	t.positions = t.positions[:0]
	for range s.n * uint64(s.k) {
		p := below(rng, s.m)
		t.positions = append(t.positions, p)
		t.before.set(p)
	}
	for i := range uint64(math.Round(s.c*float64(s.n))) * uint64(s.k) {
		t.positions[i] = below(rng, s.m)
	}
	t.after.set(t.positions...)
	t.context = t.codeAgainst(s.m)
	for i := range t.after {
		t.after[i] ^= t.before[i]
	}
	t.ones = t.after.ones()
	t.coded = t.code(s.m)
}

// code codes the array at hand.
func (t *scratch) code(m uint64) uint32 {
	t.bytes = arith.AppendBitmap(t.bytes[:0], arith.Adaptive, m, t.after)
	return uint32(len(t.bytes))
}

// codeAgainst codes which of the old zeros became ones, and which of the old
// ones zeros, each by their ranks.
func (t *scratch) codeAgainst(m uint64) uint32 {
	t.sets, t.clears = t.sets[:0], t.clears[:0]
	ones := uint64(0) // before the word
	for i, old := range t.before {
		for flips := old ^ t.after[i]; flips != 0; flips &= flips - 1 {
			bit := uint64(bits.TrailingZeros64(flips))
			rank := ones + uint64(bits.OnesCount64(old&(1<<bit-1)))
			if old>>bit&1 == 1 {
				t.clears = append(t.clears, rank)
			} else {
				t.sets = append(t.sets, uint64(i)*64+bit-rank)
			}
		}
		ones += uint64(bits.OnesCount64(old))
	}
	t.bytes = arith.AppendSet(t.bytes[:0], arith.Adaptive, m-ones, t.sets)
	t.bytes = arith.AppendSet(t.bytes, arith.Adaptive, ones, t.clears)
	return uint32(len(t.bytes))
}
