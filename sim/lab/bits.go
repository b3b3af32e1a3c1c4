package lab

import "encoding/binary"

// A BitEncoder is an arithmetic coder of bits that are independent, given odds that both sides know.
// Its zero value is not ready: see NewBitEncoder.
type BitEncoder struct {
	out       []byte
	low, span uint64 // the interval, above the bytes that are out
}

func NewBitEncoder() *BitEncoder { return &BitEncoder{span: 1<<64 - 1} }

// whole is 1 in the scale of odds, which are above 0 and below it.
const whole = 1 << 32

// Odds turns the probability of a one into odds.
func Odds(p float64) uint64 { return uint64(min(max(p*whole, 1), whole-1)) }

func (e *BitEncoder) Encode(one bool, odds uint64) {
	bound := e.span >> 32 * odds
	if one {
		e.span = bound
	} else {
		e.add(bound)
		e.span -= bound
	}
	for ; e.span < 1<<56; e.span <<= 8 {
		e.out = append(e.out, byte(e.low>>56))
		e.low <<= 8
	}
}

// add moves the interval up. A carry goes into the bytes that are out; the first of them never
// overflows, since all intervals are within the first one.
func (e *BitEncoder) add(x uint64) {
	if e.low += x; e.low < x {
		for i := len(e.out) - 1; ; i-- {
			if e.out[i]++; e.out[i] != 0 {
				return
			}
		}
	}
}

// Finish returns the code. Behind it, the decoder reads zeros.
func (e *BitEncoder) Finish() []byte {
	e.add(1<<56 - 1)
	return append(e.out, byte(e.low>>56))
}

// A BitDecoder reads what a BitEncoder wrote, with the same odds.
type BitDecoder struct {
	rest        []byte
	value, span uint64 // the code above the interval's lower end
}

func NewBitDecoder(code []byte) *BitDecoder {
	var first [8]byte
	n := copy(first[:], code)
	return &BitDecoder{code[n:], binary.BigEndian.Uint64(first[:]), 1<<64 - 1}
}

func (d *BitDecoder) Decode(odds uint64) (one bool) {
	bound := d.span >> 32 * odds
	if one = d.value < bound; one {
		d.span = bound
	} else {
		d.value -= bound
		d.span -= bound
	}
	for ; d.span < 1<<56; d.span <<= 8 {
		d.value <<= 8
		if len(d.rest) > 0 {
			d.value |= uint64(d.rest[0])
			d.rest = d.rest[1:]
		}
	}
	return one
}
