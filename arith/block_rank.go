package arith

import (
	"math/bits"
	"sync"
)

// Blocks are ranked from 0, first by the number of ones. Among blocks of 16 bits with as many
// ones, the smaller number comes first. Among blocks of 32 bits with as many ones, those whose
// low half has fewer ones come first, then those whose low half ranks lower, then those whose
// high half ranks lower.

// tables are the same for every model, and too big to compute for each. They
// are filled by fillTables, before first use, and never change. Being a variable
// and not something pointed to saves the loops that use them a register.
var tables blockTables

type blockTables struct {
	unrank16  [1 << 16]uint16 // block of each rank
	place16   [1 << 16]uint16 // of each block, or half of a block of 32 bits: its rank among those with as many ones
	ordinal16 [1 << 16]uint8  // of each block: ordinal of its group

	cell32     [1 << 10]uint64 // at (ones of the low half)*32 + (ones of the high half): rank of the first such block
	high32     [1 << 10]uint64 // at the same index: how many high halves have as many ones
	unrank32   [1 << 16]uint32 // block of each rank below quick32
	ordinal32  [1 << 16]uint8  // its group's ordinal
	firstOrd32 [34]uint16      // ordinal of the first group with c ones
	first16    [18]uint64      // rank of the first block with c ones
	first32    [34]uint64
	least32    [34]uint8     // the fewest ones of a block whose rank has so many binary digits
	shift32    [33]uint8     // for ranks among the blocks with c ones: the shift that leaves six bits
	start32    [33][64]uint8 // for c and these six bits: the fewest ones of the low half
}

// quick32 is the number of blocks of 32 bits with at most four ones.
const quick32 = 1 + 32 + 496 + 4960 + 35960

var fillTables = sync.OnceFunc(func() {
	t := &tables
	for c := range uint(17) {
		t.first16[c+1] = t.first16[c] + choose(16, c)
	}
	next := t.first16
	for b := range uint(1 << 16) {
		c := bits.OnesCount(b)
		t.unrank16[next[c]] = uint16(b)
		t.place16[b] = uint16(next[c] - t.first16[c])
		next[c]++
	}
	eachGroup(16, func(ordinal int, _ uint, first uint64, log int) {
		for rank := first; rank < first+1<<log; rank++ {
			t.ordinal16[t.unrank16[rank]] = uint8(ordinal)
		}
	})

	for c := range uint(33) {
		first := t.first32[c]
		for a := max(c, 16) - 16; a <= min(c, 16); a++ {
			t.cell32[a*32+c-a], t.high32[a*32+c-a] = first, choose(16, c-a)
			first += choose(16, a) * choose(16, c-a)
		}
		t.first32[c+1] = first
		t.firstOrd32[c+1] = t.firstOrd32[c] + uint16(bits.OnesCount64(choose(32, c)))
	}
	for n := range uint(33) {
		for t.first32[t.least32[n]+1] <= 1<<n>>1 {
			t.least32[n]++
		}
	}
	for c := range uint(33) {
		t.shift32[c] = uint8(max(bits.Len64(choose(32, c)-1), 6) - 6)
		a := max(c, 16) - 16
		for i := range t.start32[c] {
			for rank := t.first32[c] + uint64(i)<<t.shift32[c]; a < min(c, 16) && rank >= t.cell32[(a+1)*32+c-a-1]; {
				a++
			}
			t.start32[c][i] = uint8(a)
		}
	}
	for rank := range uint64(quick32) {
		t.unrank32[rank] = slowUnrank32(rank)
	}
	eachGroup(32, func(ordinal int, _ uint, first uint64, log int) {
		for rank := first; rank < min(first+1<<log, quick32); rank++ {
			t.ordinal32[rank] = uint8(ordinal)
		}
	})
})

// eachGroup visits the groups of blocks of size bits in order of rank. It passes how many ones
// a group's blocks have, the rank of the first block, and the logarithm of their number.
func eachGroup(size uint, visit func(ordinal int, ones uint, first uint64, log int)) {
	first, ordinal := uint64(0), 0
	for c := range size + 1 {
		count := choose(size, c)
		for j := bits.Len64(count) - 1; j >= 0; j-- {
			if count>>j&1 == 1 {
				visit(ordinal, c, first, j)
				first += 1 << j
				ordinal++
			}
		}
	}
}

// slowOrdinal32 returns the ordinal of the group of a block, given its rank and its ones. A
// rank in the group of 1<<j blocks, relative to its class, has the same bits above j as the
// number of blocks in the class; at j, it has a zero where that number has a one.
func slowOrdinal32(rank uint64, ones int) uint64 {
	count := tables.first32[ones+1] - tables.first32[ones]
	j := bits.Len64((rank-tables.first32[ones])^count) - 1
	return min(uint64(tables.firstOrd32[ones])+uint64(bits.OnesCount64(count>>(j+1))), maxSymbols-1)
}

// slowUnrank32 returns the block of a rank.
func slowUnrank32(rank uint64) uint32 {
	c := uint(tables.least32[bits.Len64(rank)%34])
	for rank >= tables.first32[c+1] {
		c++
	}
	a := uint(tables.start32[c][(rank-tables.first32[c])>>tables.shift32[c]%64])
	for a < min(c, 16) && rank >= tables.cell32[((a+1)*32+c-a-1)%1024] {
		a++
	}
	cell := (a*32 + c - a) % 1024
	rest, high := uint32(rank-tables.cell32[cell]), uint32(tables.high32[cell])
	low16 := tables.unrank16[uint16(tables.first16[a])+uint16(rest/high)]
	high16 := tables.unrank16[uint16(tables.first16[c-a])+uint16(rest%high)]
	return uint32(low16) | uint32(high16)<<16
}
