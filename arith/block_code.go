package arith

import (
	"encoding/binary"
	"math/bits"
)

// A code is one string of bits, the low bits of a byte first:
//
//	zeros and then a one, at most eight bits, that pad the first byte;
//	the two states, log bits each;
//	for each symbol its raw bits, and then the bits that its state shed.
//
// The two states alternate, so that neither has to wait for the other. The encoder goes from
// the last symbol to the first and fills its buffer from the end; the decoder then reads
// forward.

// bitPacker writes the bits of a code, from the last to the first.
type bitPacker struct {
	dst  []byte // filled from the end
	at   uint   // where the next eight bytes would be stored
	acc  uint64 // its low n bits are still to be stored
	n    uint64
	next uint64 // the state whose turn it is
	last uint64
}

func (p *bitPacker) reset(dst []byte, t *encodeTable) {
	*p = bitPacker{dst: dst, at: uint(len(dst) - 8), next: t.one, last: t.one}
}

// reserve makes room for a batch of symbols of at most 28 bits, and for the end of a code.
func (p *bitPacker) reserve() {
	if p.at < windowBytes {
		larger := make([]byte, 2*len(p.dst)+4*windowBytes)
		more := len(larger) - len(p.dst)
		copy(larger[more:], p.dst)
		p.dst, p.at = larger, p.at+uint(more)
	}
}

// windowBytes is more than the bytes of a batch of symbols of at most 28 bits.
const windowBytes = 1024

// window returns the part of the buffer for the next windowBytes, which are reserved. These are stored from index
// windowBytes-1 down, eight at a time.
func (p *bitPacker) window() *[windowBytes + 7]byte {
	return (*[windowBytes + 7]byte)(p.dst[p.at-(windowBytes-1):])
}

// single codes one symbol: entry is a value<<8 plus the ordinal of the symbol.
func (p *bitPacker) single(entry uint64, t *encodeTable) {
	p.reserve()
	sym := uint8(entry)
	shed := (p.next + t.shed[sym]) >> 16
	kept := p.next >> (shed & 63)
	p.push(p.next-kept<<(shed&63), shed)
	p.push(entry>>8-t.base[sym], t.raw[sym])
	p.next, p.last = p.last, uint64(t.next[(kept+t.turn[sym])%(1<<blockLog)])
}

// push writes the n bits of v, at most 56, before all bits so far.
func (p *bitPacker) push(v, n uint64) {
	p.acc = p.acc<<(n&63) | v
	p.n += n
	binary.LittleEndian.PutUint64(p.dst[p.at:], p.acc<<(-p.n&63))
	p.at -= uint(p.n >> 3)
	p.n &= 7
}

// finish writes the states and the padding before the symbols. It returns the code,
// which is the end of the buffer.
func (p *bitPacker) finish(t *encodeTable) []byte {
	log := uint64(bits.Len64(t.one) - 1)
	// The symbol that was coded last is decoded first, from the state that it left.
	p.push(p.next-t.one, log)
	p.push(p.last-t.one, log)
	p.push(1<<(7-p.n), 8-p.n)
	return p.dst[p.at+8:]
}

// batch is the number of symbols that are coded and decoded at a time.
const batch = 256

// bitReader reads the bits of a code.
type bitReader struct {
	src  []byte
	at   uint64 // the next bit of src; after its end there are zeros
	next uint64 // the state whose turn it is, less L
	last uint64
}

// reset starts to read a code. It returns false if no code begins with these bytes.
func (r *bitReader) reset(src []byte, t *decodeTable) bool {
	if len(src) == 0 || src[0] == 0 {
		return false
	}
	*r = bitReader{src: src, at: uint64(bits.TrailingZeros8(src[0]) + 1)}
	r.next = r.pull(t.log)
	r.last = r.pull(t.log)
	return true
}

// peek returns the next 56 bits or more.
func (r *bitReader) peek() uint64 {
	rest := r.src[min(r.at/8, uint64(len(r.src))):]
	if len(rest) >= 8 {
		return binary.LittleEndian.Uint64(rest) >> (r.at % 8)
	}
	x := uint64(0)
	for i, b := range rest {
		x |= uint64(b) << (8 * i)
	}
	return x >> (r.at % 8)
}

func (r *bitReader) pull(n uint) uint64 {
	v := r.peek() & (1<<n - 1)
	r.at += uint64(n)
	return v
}

// overrun reports whether more bits were read than the code has.
func (r *bitReader) overrun() bool { return r.at > 8*uint64(len(r.src)) }

// done reports whether the code ends here, in the states from which its encoder started.
func (r *bitReader) done() bool {
	return r.at == 8*uint64(len(r.src)) && r.next == 0 && r.last == 0
}

// values decodes len(out) symbols, of at most 56 bits each. The caller must call overrun to
// find out whether the code has so many.
func (r *bitReader) values(out []uint64, t *decodeTable) {
	s0, s1, at, src := r.next, r.last, r.at, r.src
	done := 0
	for i := range out {
		if at>>3+8 > uint64(len(src)) {
			break
		}
		x := binary.LittleEndian.Uint64(src[at>>3:at>>3+8:at>>3+8]) >> (at & 7)
		s0 %= 1 << blockLog
		sym := t.sym[s0]
		out[i] = t.base[sym] + x&t.mask[sym]
		raw, shed := t.raw[s0], t.shed[s0]
		x >>= raw & 63
		s0, s1 = s1, uint64(t.next[s0])+x&(1<<(shed&63)-1)
		at += uint64(raw) + uint64(shed)
		done++
	}
	r.next, r.last, r.at = s0, s1, at
	for i := range out[done:] { // those in the last eight bytes
		x := r.peek()
		s := r.next % (1 << blockLog)
		sym := t.sym[s]
		out[done+i] = t.base[sym] + x&t.mask[sym]
		raw, shed := t.raw[s], t.shed[s]
		x >>= raw & 63
		r.next, r.last = r.last, uint64(t.next[s])+x&(1<<(shed&63)-1)
		r.at += uint64(raw) + uint64(shed)
	}
}
