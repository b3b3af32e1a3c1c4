package index

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// rows has the dense filters of peers with one geometry. A row has the bits of all peers for one
// position, so that the result for all peers is the conjunction of as many rows as there are hashes.
type rows struct {
	geometry digest.Geometry
	width    uint       // bits of a row: 8, 16, 32, or a multiple of 64
	words    []uint64   // rows do not straddle words
	members  []*indexed // by column; nil for none
}

// A rowSet is the state of rows for a view.
type rowSet struct {
	geometry digest.Geometry
	width    uint
	words    []uint64
	places   []uint32 // by column; noPlace for none
}

const noPlace = ^uint32(0)

func newRows(g digest.Geometry) *rows {
	r := &rows{geometry: g}
	r.widen(8)
	return r
}

// rowWords returns how many words m rows take.
func rowWords(m uint64, width uint) uint64 { return (m*uint64(width) + 63) / 64 }

func (r *rows) nextWidth() uint {
	if r.width < 64 {
		return 2 * r.width
	}
	return r.width + max(64, r.width/4/64*64)
}

// nextBytes returns how many more bytes another member takes.
func (r *rows) nextBytes() int {
	if slices.Contains(r.members, nil) {
		return 0
	}
	return int(8*rowWords(r.geometry.Bits, r.nextWidth())) - 8*len(r.words)
}

// admit returns the column of a new member. The caller fills it.
func (r *rows) admit(e *indexed) int {
	column := slices.Index(r.members, nil)
	if column < 0 {
		column = len(r.members)
		r.widen(r.nextWidth())
	}
	r.members[column] = e
	return column
}

// widen copies everything into wider rows. The present view keeps the old ones.
func (r *rows) widen(width uint) {
	words := make([]uint64, rowWords(r.geometry.Bits, width))
	for p := range r.geometry.Bits {
		for part := uint64(0); part < uint64(r.width); part += 64 {
			at := p*uint64(width) + part
			words[at/64] |= partOf(r.words, p*uint64(r.width)+part, r.width) << (at % 64)
		}
	}
	r.width, r.words = width, words
	for len(r.members) < int(width) {
		r.members = append(r.members, nil)
	}
}

// partOf returns the next 64 bits of a row from at on, or the whole row if it has fewer.
func partOf(words []uint64, at uint64, width uint) uint64 {
	return atomic.LoadUint64(&words[at/64]) >> (at % 64) & (1<<min(width, 64) - 1)
}

func (r *rows) empty() bool {
	return !slices.ContainsFunc(r.members, func(e *indexed) bool { return e != nil })
}

func (r *rows) bytes() int { return 8*cap(r.words) + 12*cap(r.members) + 128 }

func (r *rows) set() rowSet {
	s := rowSet{r.geometry, r.width, r.words, make([]uint32, len(r.members))}
	for i, e := range r.members {
		s.places[i] = noPlace
		if e != nil {
			s.places[i] = e.place
		}
	}
	return s
}

// fill sets the bits of a column to those of f.
func (r *rows) fill(column int, f *digest.Filter) {
	var ahead [512]uint64
	set := f.AppendPositions(ahead[:0], 0, len(ahead))
	for p := range r.geometry.Bits {
		if len(set) > 0 && set[0] < p {
			if set = set[1:]; len(set) == 0 {
				set = f.AppendPositions(ahead[:0], p, len(ahead))
			}
		}
		at := p*uint64(r.width) + uint64(column)
		is := r.words[at/64]>>(at%64)&1 != 0
		if should := len(set) > 0 && set[0] == p; is != should {
			r.flipBit(at)
		}
	}
}

func (r *rows) flip(column int, positions []uint64) {
	const ahead = 16
	for len(positions) > 0 {
		n := min(ahead, len(positions))
		for _, p := range positions[:n] {
			atomic.LoadUint64(&r.words[(p*uint64(r.width)+uint64(column))/64])
		}
		for _, p := range positions[:n] {
			r.flipBit(p*uint64(r.width) + uint64(column))
		}
		positions = positions[n:]
	}
}

func (r *rows) flipBit(at uint64) {
	atomic.StoreUint64(&r.words[at/64], r.words[at/64]^1<<(at%64))
}

// collect adds to set the places of members whose filters have k.
func (r *rowSet) collect(k digest.Key, set []uint64) {
	var buf [digest.MaxHashes]uint64
	positions := r.geometry.AppendPositions(buf[:0], k)
	for part := uint64(0); part < uint64(r.width); part += 64 {
		all := ^uint64(0)
		for _, p := range positions {
			all &= partOf(r.words, p*uint64(r.width)+part, r.width)
		}
		for ; all != 0; all &= all - 1 {
			if place := r.places[part+uint64(bits.TrailingZeros64(all))]; place != noPlace {
				set[place/64] |= 1 << (place % 64)
			}
		}
	}
}
