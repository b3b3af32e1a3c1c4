package arith

import "math/bits"

// Bit is an adaptive model of a binary source: the next bit is i with
// probability Ci/(C0+C1), and coding it adds one to Ci. The counts start at
// one by [NewBit]. Coding m bits of which x are one, in any order, takes
//
//	log2 (m+1)!/(x! (m-x)!)
//
// bits, and at most ten more to end the code (Mitzenmacher 2002, appendix). For side
// information, keep one Bit for each context and code every bit under its own.
//
// The counts are 64 bits wide and never halved, so a Bit does not forget: it
// fits a source that does not drift. It is not safe for concurrent use.
type Bit struct {
	C0, C1 uint64 // how often each value was seen, plus one
}

// NewBit returns a model that has seen nothing: both values equally likely.
func NewBit() Bit { return Bit{1, 1} }

// EncodeBit codes bit, 0 or 1, under model, which learns it.
func (e *Encoder) EncodeBit(model *Bit, bit int) {
	split := model.split(e.width)
	if bit == 0 {
		model.C0++
		e.narrow(0, split)
	} else {
		model.C1++
		e.narrow(split, e.width-split)
	}
}

// DecodeBit returns the bit that [Encoder.EncodeBit] coded under the same
// model in the same state, which learns it.
func (d *Decoder) DecodeBit(model *Bit) int {
	split := model.split(d.width)
	if d.ahead < split {
		model.C0++
		d.narrow(0, split)
		return 0
	}
	model.C1++
	d.narrow(split, d.width-split)
	return 1
}

// split returns the part of width that stands for a zero, at least 1 and at
// most width-1.
func (b *Bit) split(width uint64) uint64 {
	hi, lo := bits.Mul64(width, b.C0)
	q, _ := bits.Div64(hi, lo, b.C0+b.C1)
	return min(max(q, 1), width-1)
}
