package arith

import "math/bits"

// The adaptive method knows how many positions are in the set and how many are not, and draws
// them like balls from an urn: the probability of the next one follows from what is left. So it
// spends no bits on learning the density.
//
// If at least one in sparseFactor of the bits is of the rarer kind, it codes bit by bit (this
// file), otherwise gap by gap (adaptive_gaps.go).
const sparseFactor = 8

func sparse(m, x uint64) bool { return sparseFactor*min(x, m-x) < m }

// appendAdaptive appends the code of s, which has x positions.
func appendAdaptive(dst []byte, s *source, x uint64) []byte {
	var e encoder
	e.reset(dst)
	encodeAdaptive(&e, s, x)
	return e.finish()
}

func encodeAdaptive(e *encoder, s *source, x uint64) {
	if !sparse(s.m, x) {
		encodeWords(e, s, x)
		return
	}
	s.flip = x > s.m-x
	g := newGapModel(s.m, min(x, s.m-x))
	from := uint64(0)
	for p := range s.members {
		g.encode(e, p-from)
		from = p + 1
	}
}

func decodeAdaptiveSet(t *taker, src []byte, m, x uint64) error {
	var d decoder
	d.reset(src)
	if err := decodeAdaptive(&d, t, m, x); err != nil {
		return err
	}
	return d.finish()
}

func decodeAdaptive(d *decoder, t *taker, m, x uint64) error {
	switch {
	case !sparse(m, x):
		return decodeWords(d, m, x, func(i, w uint64) { t.word(w, 64*i) })
	case x <= m-x:
		return decodeGaps(d, m, x, t.add)
	}
	err := decodeGaps(d, m, m-x, t.skip)
	t.run(m)
	return err
}

// zeroOdds returns the probability, scaled by 2^64, that a bit is zero if ones of the left bits
// that remain are one. It is used for a whole word: computing it anew for every bit would save
// less than three bits in all.
func zeroOdds(left, ones uint64) uint64 {
	q, _ := bits.Div64(left-ones, 0, left)
	return max(q, 1<<32)
}

// encodeWords codes all m bits of s, x of them one.
func encodeWords(e *encoder, s *source, x uint64) {
	var words [wordBatch]uint64
	left, ones := s.m, x
	for left > 0 {
		for _, w := range s.array(words[:min(wordBatch, wordsFor(left))], s.m-left) {
			if ones == 0 || ones == left {
				return
			}
			n := min(left, 64)
			e.encodeBits(zeroOdds(left, ones), w, n)
			left -= n
			ones -= uint64(bits.OnesCount64(w))
		}
	}
}

// decodeWords passes all words of m bits to emit, from the first on, unless there is an error.
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
	return d.err
}
