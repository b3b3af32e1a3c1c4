package arith

import (
	"math/bits"
	"sync"
)

// tables are the same for every model, and too big to compute for each. They
// are filled by fillTables, before first use, and never change. Being a variable
// and not something pointed to saves the loops that use them a register.
var tables struct {
	unrank16  [1 << 16]uint16 // block of each rank
	place16   [1 << 16]uint16 // of each block: its rank among those with as many ones
	ordinal16 [1 << 16]uint8  // of each block: ordinal of its group
}

var fillTables = sync.OnceFunc(func() {
	t := &tables
	var next, first [17]uint64 // by number of ones
	for c := range uint(16) {
		first[c+1] = first[c] + choose16(c)
	}
	next = first
	for b := range uint(1 << 16) {
		c := bits.OnesCount(b)
		t.unrank16[next[c]] = uint16(b)
		t.place16[b] = uint16(next[c] - first[c])
		next[c]++
	}
	eachGroup(func(ordinal int, _ uint, first uint64, log int) {
		for rank := first; rank < first+1<<log; rank++ {
			t.ordinal16[t.unrank16[rank]] = uint8(ordinal)
		}
	})
})

// eachGroup visits the groups of blocks in order of rank. It passes how many ones
// a group's blocks have, the rank of the first block, and the logarithm of their number.
func eachGroup(visit func(ordinal int, ones uint, first uint64, log int)) {
	first, ordinal := uint64(0), 0
	for c := range uint(17) {
		count := choose16(c)
		for j := bits.Len64(count) - 1; j >= 0; j-- {
			if count>>j&1 == 1 {
				visit(ordinal, c, first, j)
				first += 1 << j
				ordinal++
			}
		}
	}
}
