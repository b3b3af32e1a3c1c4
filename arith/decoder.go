package arith

import (
	"encoding/binary"
	"math/bits"
)

// Decoder reads what an [Encoder] wrote, under the same models in the same
// order. It never reads past its input: where the code has run out it reads
// zeros and remembers that it did. Its first error sticks; what it returns
// after one is meaningless but within range, so that a loop whose length does
// not depend on what was decoded needs to look at [Decoder.Finish] only.
//
// A Decoder must be given its source by [Decoder.Reset] before use. It is not
// safe for concurrent use.
type Decoder struct {
	src   []byte
	next  int    // bytes of src that have entered code, which runs past the end by zeros
	code  uint64 // the last 64 bits of the code that have entered
	ahead uint64 // code less the low end of the interval
	width uint64
	err   error
}

// Reset starts to decode src, which is all of a code and nothing more. The
// Decoder keeps src until the next Reset.
func (d *Decoder) Reset(src []byte) {
	*d = Decoder{src: src, width: 1<<64 - 1}
	d.shift()
	d.shift()
	if d.ahead >= d.width {
		d.fail(ErrCorrupt)
	}
}

// Err returns the first error so far: nil, [ErrTruncated] or [ErrCorrupt].
func (d *Decoder) Err() error { return d.err }

func (d *Decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.ahead, d.width = 0, 1<<64-1
}

// Target returns the frequency in [0, total) that the code points at. The
// caller finds the symbol that owns it and calls [Decoder.Consume]. It panics
// unless 0 < total <= [MaxTotal].
func (d *Decoder) Target(total uint64) uint64 {
	if total == 0 || total > MaxTotal {
		panic("arith: Target needs 0 < total <= MaxTotal")
	}
	// The largest f with width*f/total <= ahead. ahead < width makes it < total.
	hi, lo := bits.Mul64(d.ahead+1, total)
	lo, borrow := bits.Sub64(lo, 1, 0)
	f, _ := bits.Div64(hi-borrow, lo, d.width)
	return f
}

// Consume narrows the interval to the symbol that owns [start, end) of total
// and holds the frequency that [Decoder.Target] returned. It panics unless
// start < end <= total <= [MaxTotal].
func (d *Decoder) Consume(start, end, total uint64) {
	if start >= end || end > total || total > MaxTotal {
		panic("arith: Consume needs start < end <= total <= MaxTotal")
	}
	from := scale(d.width, start, total)
	to := scale(d.width, end, total)
	if d.ahead < from || d.ahead >= to {
		panic("arith: Consume needs the symbol that holds Target")
	}
	d.narrow(from, to-from)
}

// DecodeUniform reads n bits that [Encoder.EncodeUniform] wrote. It panics
// unless n <= 40.
func (d *Decoder) DecodeUniform(n uint) uint64 {
	if n > 40 {
		panic("arith: DecodeUniform needs n <= 40")
	}
	v := uint64(0)
	for n > uniformBits {
		n -= uniformBits
		v = v<<uniformBits | d.uniform(uniformBits)
	}
	return v<<n | d.uniform(n)
}

func (d *Decoder) uniform(n uint) uint64 {
	w := d.width >> n
	v := d.ahead / w
	if v>>n != 0 { // the rest that the division leaves belongs to no value
		d.fail(ErrCorrupt)
		return 0
	}
	d.narrow(v*w, w)
	return v
}

// decodeBit is the inverse of Encoder.encodeBit.
func (d *Decoder) decodeBit(zero uint64) uint64 {
	split, _ := bits.Mul64(d.width, zero)
	if d.ahead < split {
		d.narrow(0, split)
		return 0
	}
	d.narrow(split, d.width-split)
	return 1
}

// decodeBits is the inverse of Encoder.encodeBits, for n of 1 to 64.
func (d *Decoder) decodeBits(zero, n uint64) uint64 {
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

func (d *Decoder) narrow(from, width uint64) {
	d.ahead -= from
	d.width = width
	if width < minWidth {
		d.width <<= 32
		d.shift()
	}
}

// shift takes the next 32 bits of the code in.
func (d *Decoder) shift() {
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
	// Eight bytes are looked at ahead of those that the symbols have used up.
	if d.next-8 > len(d.src) {
		d.fail(ErrTruncated)
	}
}

// Finish ends decoding. It returns the first error, and otherwise checks that
// the input is exactly what the encoder writes for the symbols decoded:
// [ErrTruncated] if that is longer than the input, [ErrCorrupt] if it is
// shorter or other.
func (d *Decoder) Finish() error {
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
