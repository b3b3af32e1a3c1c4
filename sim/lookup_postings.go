package main

import (
	"math/bits"

	"github.com/summarycache/summarycache/digest"
)

// postingsWay is the simplest table from position to peers, for peers of one m: an
// entry of 32 bits for each position of each peer, half of it the position's lower
// bits and half the peer, in the order of the upper bits or where there is room next
// (linear probing). It answers as the filters do as long as no entry is moved so far
// that the lower bits come again.
type postingsWay struct {
	geometry digest.Geometry
	inverse  uint64   // 2^64/m
	entries  []uint32 // 0 for none; peers count from 1
}

// postingsFill is how full the table gets; fuller, and it has to be searched far.
const postingsFill = 0.75

func newPostings(g digest.Geometry, entries int) *postingsWay {
	return &postingsWay{g, ^uint64(0) / g.Bits, make([]uint32, int(float64(entries)/postingsFill)+1)}
}

func (w *postingsWay) filter(keys []digest.Key) (any, error) { return filterOf(w.geometry, keys) }

// home is where the search for a position begins.
func (w *postingsWay) home(p uint64) int {
	at, _ := bits.Mul64(p*w.inverse, uint64(len(w.entries)))
	return int(at)
}

func (w *postingsWay) add(peer int, filter any) error {
	for p := range filter.(*digest.Filter).Positions() {
		at := w.home(p)
		for w.entries[at] != 0 {
			at = (at + 1) % len(w.entries)
		}
		w.entries[at] = uint32(p)<<16 | uint32(peer+1)
	}
	return nil
}

func (w *postingsWay) lookup(k digest.Key) (n int) {
	p, _ := bits.Mul64(uint64(k), w.geometry.Bits)
	for at := w.home(p); w.entries[at] != 0; {
		if w.entries[at]>>16 == uint32(p)&0xffff {
			n++
		}
		if at++; at == len(w.entries) {
			at = 0
		}
	}
	return n
}

func (w *postingsWay) bytes() int { return 4 * len(w.entries) }
