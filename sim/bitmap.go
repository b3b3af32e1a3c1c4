package main

import (
	"math/bits"
	"slices"
)

// A bitmap is an array of bits, rounded up to whole words.
type bitmap []uint64

func newBitmap(m uint64) bitmap { return make(bitmap, (m+63)/64) }

func (b bitmap) set(positions ...uint64) {
	for _, p := range positions {
		b[p/64] |= 1 << (p % 64)
	}
}

func (b bitmap) has(p uint64) bool { return b[p/64]>>(p%64)&1 != 0 }

func (b bitmap) hasAll(positions []uint64) bool {
	return !slices.ContainsFunc(positions, func(p uint64) bool { return !b.has(p) })
}

// ones returns how many bits are set.
func (b bitmap) ones() uint32 {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return uint32(n)
}
