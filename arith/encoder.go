package arith

import (
	"encoding/binary"
	"math/bits"
)

// The interval's width never falls below minWidth between two symbols, and
// renormalisation moves 32 bits at a time.
const minWidth = 1 << 32

// MaxTotal is the largest total of frequencies that [Encoder.Encode] and
// [Decoder.Target] accept. A larger one could leave a symbol no code at all.
const MaxTotal = 1 << 32

// Encoder writes symbols as one number in [0, 1), after Moffat, Neal and
// Witten: the interval that the symbols so far have narrowed it to is
// [low, low+width), scaled to 64 bits.
//
// An Encoder must be given its destination by [Encoder.Reset] before use. It
// is not safe for concurrent use.
type Encoder struct {
	dst   []byte
	low   uint64
	width uint64
}

// Reset starts a new code, to be appended to dst. The Encoder owns dst until
// [Encoder.Finish] returns it, grown.
func (e *Encoder) Reset(dst []byte) {
	*e = Encoder{dst: dst, width: 1<<64 - 1}
}

// Encode narrows the interval to a symbol that owns the frequencies
// [start, end) of total. It panics unless start < end <= total <= [MaxTotal].
func (e *Encoder) Encode(start, end, total uint64) {
	if start >= end || end > total || total > MaxTotal {
		panic("arith: Encode needs start < end <= total <= MaxTotal")
	}
	from := scale(e.width, start, total)
	e.narrow(from, scale(e.width, end, total)-from)
}

// EncodeUniform writes the low n bits of v, each value as likely as another.
// It panics unless n <= 40 and v < 1<<n.
func (e *Encoder) EncodeUniform(v uint64, n uint) {
	if n > 40 || v>>n != 0 {
		panic("arith: EncodeUniform needs n <= 40 and v < 1<<n")
	}
	for n > uniformBits {
		n -= uniformBits
		e.uniform(v>>n, uniformBits)
		v &= 1<<n - 1
	}
	e.uniform(v, n)
}

// uniformBits is how much of a uniform value one step codes: the width's
// rounding then costs at most 2^-16 of a bit.
const uniformBits = 16

func (e *Encoder) uniform(v uint64, n uint) {
	w := e.width >> n
	e.narrow(v*w, w)
}

// encodeBit codes bit, which is zero with probability zero/2^64. zero must be
// at least 1<<32, so that neither outcome's interval is empty.
func (e *Encoder) encodeBit(zero uint64, bit uint64) {
	split, _ := bits.Mul64(e.width, zero)
	if bit == 0 {
		e.narrow(0, split)
	} else {
		e.narrow(split, e.width-split)
	}
}

// encodeBits is encodeBit for the low n bits of w. It has the interval in
// registers, and what depends on a bit is no branch, since none can be guessed.
func (e *Encoder) encodeBits(zero, w, n uint64) {
	low, width := e.low, e.width
	for ; n > 0; n-- {
		split, _ := bits.Mul64(width, zero)
		one := -(w & 1) // all ones for a one
		w >>= 1
		var carry uint64
		low, carry = bits.Add64(low, split&one, 0)
		width = split ^ (split^(width-split))&one
		if carry != 0 {
			propagate(e.dst)
		}
		if width < minWidth {
			e.dst = binary.BigEndian.AppendUint32(e.dst, uint32(low>>32))
			low <<= 32
			width <<= 32
		}
	}
	e.low, e.width = low, width
}

// narrow moves to the part [from, from+width) of the interval.
func (e *Encoder) narrow(from, width uint64) {
	low, carry := bits.Add64(e.low, from, 0)
	if carry != 0 {
		propagate(e.dst)
	}
	if width < minWidth {
		e.dst = binary.BigEndian.AppendUint32(e.dst, uint32(low>>32))
		low <<= 32
		width <<= 32
	}
	e.low, e.width = low, width
}

// Finish ends the code with the fewest bytes that name a number in the
// interval, and returns the destination. Reset must be called before the next
// use.
func (e *Encoder) Finish() []byte {
	v, n := shortest(e.low, e.width)
	if v < e.low {
		propagate(e.dst)
	}
	for i := range n {
		e.dst = append(e.dst, byte(v>>(56-8*i)))
	}
	dst := e.dst
	*e = Encoder{}
	return dst
}

// shortest returns the number v in [low, low+width) with the fewest leading
// bytes n, the rest of them zero. v < low says that it has wrapped round.
func shortest(low, width uint64) (v uint64, n int) {
	for ; ; n++ {
		tail := uint64(1<<64-1) >> (8 * n)
		v = (low + tail) &^ tail
		if v-low < width {
			return v, n
		}
	}
}

// propagate adds one to the number that b ends with. The code stays below 1,
// so a byte that can take the carry is always there.
func propagate(b []byte) {
	i := len(b) - 1
	for ; b[i] == 0xff; i-- {
		b[i] = 0
	}
	b[i]++
}

// scale returns width*part/total, rounded down.
func scale(width, part, total uint64) uint64 {
	if part == total {
		return width
	}
	hi, lo := bits.Mul64(width, part)
	q, _ := bits.Div64(hi, lo, total)
	return q
}
