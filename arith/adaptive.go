package arith

import "math/bits"

// The adaptive method knows from the start how many positions are in the set
// and how many are not, and draws them like balls from an urn: what is left
// decides what comes next. That saves the bits by which a model that starts at
// equal counts learns the density, and it can neither promise too many
// positions nor too few.
//
// Where at least one in sparseFactor of the bits is of the rarer kind it codes
// bit by bit (this file), elsewhere the gaps (adaptive_gaps.go).
const sparseFactor = 8

func sparse(m, x uint64) bool { return sparseFactor*min(x, m-x) < m }

func appendAdaptiveSet(dst []byte, m uint64, positions []uint64) []byte {
	x := uint64(len(positions))
	var e encoder
	e.reset(dst)
	switch {
	case !sparse(m, x):
		next := 0
		encodeWords(&e, m, x, func(i uint64) uint64 {
			w := uint64(0)
			for ; next < len(positions) && positions[next]/64 == i; next++ {
				w |= 1 << (positions[next] % 64)
			}
			return w
		})
	case x <= m-x:
		g := newGapModel(m, x)
		from := uint64(0)
		for _, p := range positions {
			g.encode(&e, p-from)
			from = p + 1
		}
	default:
		g := newGapModel(m, m-x)
		from, absent := uint64(0), uint64(0)
		next := 0
		for ; absent < m; absent++ {
			if next < len(positions) && positions[next] == absent {
				next++
				continue
			}
			g.encode(&e, absent-from)
			from = absent + 1
		}
	}
	return e.finish()
}

func appendAdaptiveBitmap(dst []byte, m uint64, words []uint64) []byte {
	x := popcount(words)
	var e encoder
	e.reset(dst)
	if !sparse(m, x) {
		encodeWords(&e, m, x, func(i uint64) uint64 { return words[i] })
		return e.finish()
	}
	rare, flip := x, uint64(0)
	if x > m-x {
		rare, flip = m-x, ^uint64(0)
	}
	g := newGapModel(m, rare)
	from := uint64(0)
	for i, w := range words {
		for w ^= flip; w != 0 && rare > 0; w &= w - 1 { // stops short of the bits beyond m
			p := uint64(i)*64 + uint64(bits.TrailingZeros64(w))
			g.encode(&e, p-from)
			from = p + 1
			rare--
		}
	}
	return e.finish()
}

func decodeAdaptiveSet(dst []uint64, src []byte, m, x uint64) ([]uint64, error) {
	before := len(dst)
	if err := decodeAdaptiveEach(src, m, x, func(p uint64) { dst = append(dst, p) }); err != nil {
		return dst[:before], err
	}
	return dst, nil
}

func decodeAdaptiveTo(src []byte, m, x uint64, take func([]uint64)) error {
	t := newTaker(x, take)
	err := decodeAdaptiveEach(src, m, x, t.add)
	if err == nil {
		t.flush()
	}
	return err
}

func decodeAdaptiveEach(src []byte, m, x uint64, emit func(p uint64)) error {
	var d decoder
	d.reset(src)
	var err error
	switch {
	case !sparse(m, x):
		err = decodeWords(&d, m, x, func(i, w uint64) {
			for ; w != 0; w &= w - 1 {
				emit(i*64 + uint64(bits.TrailingZeros64(w)))
			}
		})
	case x <= m-x:
		err = decodeGaps(&d, m, x, emit)
	default:
		from := uint64(0)
		err = decodeGaps(&d, m, m-x, func(p uint64) {
			for ; from < p; from++ {
				emit(from)
			}
			from = p + 1
		})
		for ; err == nil && from < m; from++ {
			emit(from)
		}
	}
	return err
}

func decodeAdaptiveBitmap(words []uint64, src []byte, m, x uint64) error {
	var d decoder
	d.reset(src)
	if !sparse(m, x) {
		return decodeWords(&d, m, x, func(i, w uint64) { words[i] = w })
	}
	if x <= m-x {
		clear(words)
		return decodeGaps(&d, m, x, func(p uint64) { words[p/64] |= 1 << (p % 64) })
	}
	for i := range words {
		words[i] = 1<<64 - 1
	}
	if m%64 != 0 {
		words[len(words)-1] = 1<<(m%64) - 1
	}
	return decodeGaps(&d, m, m-x, func(p uint64) { words[p/64] &^= 1 << (p % 64) })
}

// zeroOdds returns the probability, scaled by 2^64, that a bit is zero when
// ones of the left bits that remain are one. It serves a whole word: redrawing
// it for every bit would save less than three bits in all.
func zeroOdds(left, ones uint64) uint64 {
	q, _ := bits.Div64(left-ones, 0, left)
	return max(q, 1<<32)
}

// encodeWords codes m bits, x of them one, that word delivers 64 at a time
// from the first on.
func encodeWords(e *encoder, m, x uint64, word func(i uint64) uint64) {
	left, ones := m, x
	for i := uint64(0); left > 0 && ones > 0 && ones < left; i++ {
		w, n := word(i), min(left, 64)
		e.encodeBits(zeroOdds(left, ones), w, n)
		left -= n
		ones -= uint64(bits.OnesCount64(w))
	}
}

// decodeWords hands all words of m bits to emit, from the first on, unless
// there is an error.
func decodeWords(d *decoder, m, x uint64, emit func(i, w uint64)) error {
	left, ones := m, x
	for i := uint64(0); left > 0; i++ {
		w, n := uint64(0), min(left, 64)
		switch ones {
		case 0:
		case left:
			w = ^uint64(0) >> (64 - n)
		default:
			w = d.decodeBits(zeroOdds(left, ones), n)
			if d.err != nil {
				return d.err
			}
		}
		left -= n
		drawn := uint64(bits.OnesCount64(w))
		if drawn > ones || ones-drawn > left {
			return ErrCorrupt
		}
		ones -= drawn
		emit(i, w)
	}
	return d.finish()
}
