package arith

import (
	"math"
	"slices"
)

// Region is a piece of a set that was decoded without the rest: all positions
// of the set that lie in [From, To).
type Region struct {
	From, To  uint64
	Positions []uint64 // strictly increasing
}

// DecodeRegion decodes the part of a set that holds position, and no more of
// it than it must: with [Block] one chunk, of about 64 to 128 KiB of code where
// the code is longer than that; with [Adaptive] all of the set. It is the
// splitting that section II-B of Mitzenmacher's paper suggests for lookups in
// a compressed filter.
//
// The region's Positions are appended to dst, of which they share the array.
// The parameters and errors are those of [DecodeSet]; what lies outside of the
// region is not checked. It panics unless position < m.
func DecodeRegion(dst []uint64, method Method, src []byte, m, x, position uint64) (Region, error) {
	if position >= m {
		panic("arith: position beyond m")
	}
	if err := checkCounts(src, m, x); err != nil {
		return Region{}, err
	}
	before := len(dst)
	p := planBlocks(m, x)
	if method != Block || p.chunks == 0 {
		dst, err := DecodeSet(dst, method, src, m, x)
		return Region{To: m, Positions: dst[before:]}, err
	}
	parts := make([]part, p.chunks)
	if err := directory(src, &p, parts); err != nil {
		return Region{}, err
	}
	i := int(position / p.span)
	from, to := p.chunk(i)
	n := p.present(i, parts[i].count)
	if n > math.MaxInt/8 {
		return Region{}, ErrCorrupt
	}
	parts[i].before = 0
	dst = slices.Grow(dst, int(n))[:before+int(n)]
	t := blockTarget{positions: dst[before:]}
	var d chunkDecoder
	d.init(&p)
	if err := t.decode(&d, src, parts, i); err != nil {
		return Region{}, err
	}
	return Region{From: from, To: to, Positions: dst[before:]}, nil
}
