package arith

import (
	"encoding/binary"
	"math/bits"
)

// decoder reads what an encoder wrote, with the same probabilities in the same order. It never
// reads past its input: after the end it reads zeros and remembers that it did. It keeps its
// first error. What it returns after an error is meaningless but within range, so a loop whose
// length does not depend on decoded values need only check finish. Call reset before use.
type decoder struct {
	src   []byte
	next  int    // bytes of src that are in code, zeros after its end included
	code  uint64 // the last 64 bits that were taken in
	ahead uint64 // code less the low end of the interval
	width uint64
	err   error
}

// reset starts to decode src, which is all of a code and nothing more. The decoder
// keeps src until the next reset.
func (d *decoder) reset(src []byte) {
	*d = decoder{src: src, width: 1<<64 - 1}
	d.shift()
	d.shift()
	if d.ahead >= d.width {
		d.fail(ErrCorrupt)
	}
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.ahead, d.width = 0, 1<<64-1
}

// decodeUniform reads n bits that encodeUniform wrote.
func (d *decoder) decodeUniform(n uint) uint64 {
	v := uint64(0)
	for n > uniformBits {
		n -= uniformBits
		v = v<<uniformBits | d.uniform(uniformBits)
	}
	return v<<n | d.uniform(n)
}

func (d *decoder) uniform(n uint) uint64 {
	w := d.width >> n
	v := d.ahead / w
	if v>>n != 0 { // the division leaves a rest, which belongs to no value
		d.fail(ErrCorrupt)
		return 0
	}
	d.narrow(v*w, w)
	return v
}

// decodeBit is the inverse of encodeBit.
func (d *decoder) decodeBit(zero uint64) uint64 {
	split, _ := bits.Mul64(d.width, zero)
	if d.ahead < split {
		d.narrow(0, split)
		return 0
	}
	d.narrow(split, d.width-split)
	return 1
}

// decodeBits is the inverse of encodeBits, for n of 1 to 64.
func (d *decoder) decodeBits(zero, n uint64) uint64 {
	ahead, width, w := d.ahead, d.width, uint64(0)
	for range n {
		split, _ := bits.Mul64(width, zero)
		_, below := bits.Sub64(ahead, split, 0) // 1 for a zero
		one := below - 1                        // all ones for a one
		w = w>>1 | one<<63
		ahead -= split & one
		width = split ^ (split^(width-split))&one
		if width < minWidth {
			d.ahead, d.width = ahead, width<<32
			d.shift()
			ahead, width = d.ahead, d.width
		}
	}
	d.ahead, d.width = ahead, width
	return w >> ((64 - n) & 63)
}

func (d *decoder) narrow(from, width uint64) {
	d.ahead -= from
	d.width = width
	if width < minWidth {
		d.width <<= 32
		d.shift()
	}
}

// shift takes in the next 32 bits of the code.
func (d *decoder) shift() {
	var word uint32
	if rest := d.src[min(d.next, len(d.src)):]; len(rest) >= 4 {
		word = binary.BigEndian.Uint32(rest)
	} else {
		for i, b := range rest {
			word |= uint32(b) << (24 - 8*i)
		}
	}
	d.next += 4
	d.code = d.code<<32 | uint64(word)
	d.ahead = d.ahead<<32 | uint64(word)
	// code is eight bytes ahead of what the symbols have used.
	if d.next-8 > len(d.src) {
		d.fail(ErrTruncated)
	}
}

// finish ends decoding. It returns the first error. If there was none, it checks that the input
// is exactly what the encoder writes for the decoded symbols: the error is [ErrTruncated] if
// that is longer than the input, and [ErrCorrupt] if it is shorter or different.
func (d *decoder) finish() error {
	if d.err != nil {
		return d.err
	}
	low := d.code - d.ahead
	v, n := shortest(low, d.width)
	switch want := d.next - 8 + n; {
	case want > len(d.src):
		d.fail(ErrTruncated)
	case want < len(d.src) || v-low != d.ahead:
		d.fail(ErrCorrupt)
	}
	return d.err
}
