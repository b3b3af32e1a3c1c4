package main

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/summarycache/summarycache/arith"
)

// scratch holds the arrays of one trial, and its result.
type scratch struct {
	before, after []uint64 // arrays of m bits
	positions     []uint64 // of every key, k each
	sets, clears  []uint64
	bytes         []byte

	coded, context, ones uint32
}

// trial draws one filter, or a filter and its successor, and codes it.
func (s simulation) trial(t *scratch, rng rand.Source) {
	t.after = emptyBitmap(t.after, s.m)
	if s.c == 0 {
		for range s.n * uint64(s.k) {
			p := below(rng, s.m)
			t.after[p/64] |= 1 << (p % 64)
		}
		t.ones = countOnes(t.after)
		t.coded = t.code(s.m)
		return
	}

	t.before = emptyBitmap(t.before, s.m)
	t.positions = t.positions[:0]
	for range s.n * uint64(s.k) {
		p := below(rng, s.m)
		t.positions = append(t.positions, p)
		t.before[p/64] |= 1 << (p % 64)
	}
	for i := range uint64(math.Round(s.c*float64(s.n))) * uint64(s.k) {
		t.positions[i] = below(rng, s.m)
	}
	for _, p := range t.positions {
		t.after[p/64] |= 1 << (p % 64)
	}
	t.context = t.codeAgainst(s.m)
	for i := range t.after {
		t.after[i] ^= t.before[i]
	}
	t.ones = countOnes(t.after)
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

func emptyBitmap(words []uint64, m uint64) []uint64 {
	if n := (m + 63) / 64; uint64(cap(words)) >= n {
		words = words[:n]
		clear(words)
		return words
	}
	return make([]uint64, (m+63)/64)
}

func countOnes(words []uint64) uint32 {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return uint32(n)
}
