package arith

import "math/bits"

// gapModel codes the number of absent positions before each member of a sparse set. If
// positions are drawn independently, this gap is geometric: it is g or more with probability
// r^g. A geometric variable has no memory, and its binary digits are independent. So a gap
// is coded as
//
//	one decision for each jump over 1<<top positions without a member, and
//	one that there is no further jump; then
//	one decision for each digit from top-1 down to floor; then
//	the digits below floor, for which zero and one are nearly equally likely.
//
// The probabilities follow from m and x by integer arithmetic alone.
type gapModel struct {
	floor, top uint
	noJump     uint64               // probability that no jump follows, times 2^64
	zero       [maxGapDigits]uint64 // probability that digit j is zero, times 2^64
}

const maxGapDigits = 48 // r^(2^j) falls below 1/4 before j gets here: m <= MaxUniverse

// newGapModel returns the model of the gaps of x positions out of m. x must be at most a share
// 1/sparseFactor of m.
func newGapModel(m, x uint64) gapModel {
	var g gapModel
	if x == 0 {
		return g
	}
	const (
		fair  = 1<<64 - 1<<59 // r^(2^j) above 31/32: digit j is zero with probability 0.500 to 0.508
		close = 1 << 62       // r^(2^j) below 1/4: few gaps take more than one jump
	)
	r, _ := bits.Div64(m-x, 0, m) // r^(2^j), times 2^64
	for ; r >= close; g.top++ {
		if r > fair {
			g.floor++
		}
		g.zero[g.top], _ = bits.Div64(1<<63, 0, 1<<63+r>>1)
		r, _ = bits.Mul64(r, r)
	}
	g.noJump = -r
	return g
}

func (g *gapModel) encode(e *encoder, gap uint64) {
	for ; gap>>g.top != 0; gap -= 1 << g.top {
		e.encodeBit(g.noJump, 1)
	}
	e.encodeBit(g.noJump, 0)
	for j := g.top; j > g.floor; j-- {
		e.encodeBit(g.zero[j-1], gap>>(j-1)&1)
	}
	e.encodeUniform(gap&(1<<g.floor-1), g.floor)
}

// decode returns a gap. It stops at the first multiple of the jump that is not below bound.
func (g *gapModel) decode(d *decoder, bound uint64) uint64 {
	gap := uint64(0)
	for d.decodeBit(g.noJump) != 0 {
		if gap += 1 << g.top; gap >= bound {
			return gap
		}
	}
	digits := uint64(0)
	for j := g.top; j > g.floor; j-- {
		digits = digits<<1 | d.decodeBit(g.zero[j-1])
	}
	return gap + digits<<g.floor + d.decodeUniform(g.floor)
}

// decodeGaps passes x increasing positions below m to emit, unless there is an error.
func decodeGaps(d *decoder, m, x uint64, emit func(p uint64)) error {
	g := newGapModel(m, x)
	from := uint64(0)
	for range x {
		p := from + g.decode(d, m-from)
		if d.err != nil {
			return d.err
		}
		if p >= m {
			return ErrCorrupt
		}
		emit(p)
		from = p + 1
	}
	return d.err
}
