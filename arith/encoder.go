package arith

import (
	"encoding/binary"
	"math/bits"
)

// The interval's width never falls below minWidth between two symbols, and
// renormalisation moves 32 bits at a time.
const minWidth = 1 << 32

// encoder writes decisions as one number in [0, 1), after Moffat, Neal and Witten ("Arithmetic
// coding revisited", ACM TOIS 16(3), 1998). The decisions so far have narrowed it to the
// interval [low, low+width), scaled to 64 bits. Call reset before use.
type encoder struct {
	dst   []byte
	low   uint64
	width uint64
}

// reset starts a new code, which is appended to dst. The encoder owns dst until finish returns
// it.
func (e *encoder) reset(dst []byte) {
	*e = encoder{dst: dst, width: 1<<64 - 1}
}

// encodeUniform writes v, which is below 1<<n for n at most 44. All values are equally likely.
func (e *encoder) encodeUniform(v uint64, n uint) {
	for n > uniformBits {
		n -= uniformBits
		e.uniform(v>>n, uniformBits)
		v &= 1<<n - 1
	}
	e.uniform(v, n)
}

// uniformBits is how many bits of a uniform value one step codes. The width's rounding then
// costs at most 2^-16 of a bit.
const uniformBits = 16

func (e *encoder) uniform(v uint64, n uint) {
	w := e.width >> n
	e.narrow(v*w, w)
}

// encodeBit codes bit, which is zero with probability zero/2^64. zero must be
// at least 1<<32, so that neither outcome's interval is empty.
func (e *encoder) encodeBit(zero uint64, bit uint64) {
	split, _ := bits.Mul64(e.width, zero)
	if bit == 0 {
		e.narrow(0, split)
	} else {
		e.narrow(split, e.width-split)
	}
}

// encodeBits is encodeBit for the low n bits of w. It keeps the interval in registers,
// and has no branch that depends on a bit, since no processor can predict those.
func (e *encoder) encodeBits(zero, w, n uint64) {
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
func (e *encoder) narrow(from, width uint64) {
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

// finish ends the code with the fewest bytes that identify a number in the interval, and
// returns the destination. Call reset before the next use.
func (e *encoder) finish() []byte {
	v, n := shortest(e.low, e.width)
	if v < e.low {
		propagate(e.dst)
	}
	for i := range n {
		e.dst = append(e.dst, byte(v>>(56-8*i)))
	}
	dst := e.dst
	*e = encoder{}
	return dst
}

// shortest returns the number v in [low, low+width) that needs the fewest leading bytes n, the
// rest being zero. If v < low, it has wrapped around.
func shortest(low, width uint64) (v uint64, n int) {
	for ; ; n++ {
		tail := uint64(1<<64-1) >> (8 * n)
		v = (low + tail) &^ tail
		if v-low < width {
			return v, n
		}
	}
}

// propagate adds one to the number that b ends with. The code stays below 1, so some byte can
// take the carry.
func propagate(b []byte) {
	i := len(b) - 1
	for ; b[i] == 0xff; i-- {
		b[i] = 0
	}
	b[i]++
}
