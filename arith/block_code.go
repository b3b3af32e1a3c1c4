package arith

import (
	"encoding/binary"
	"math/bits"
)

// A chunk's bytes are one string of bits, the low bits of a byte first:
//
//	zeros and then a one, at most eight bits, that pad the first byte;
//	the two states, log bits each;
//	for each symbol its raw bits, and then the bits that its state shed.
//
// The two states alternate, so that neither has to wait for the other. The encoder goes from
// the last symbol to the first and fills its buffer from the end; the decoder then reads
// forward.

// bitPacker writes the bits of a chunk, from the last to the first.
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

// singles codes entries in order, at most a batch: the last symbol of the chunk comes first. An
// entry is a value<<8 plus the ordinal of its symbol. A symbol takes at most 56 bits.
func (p *bitPacker) singles(entries []uint64, t *encodeTable) {
	s0, s1, acc, n := p.next, p.last, p.acc, p.n
	for len(entries) > 1 {
		window, at := p.window(), uint(windowBytes-1)
		for ; len(entries) > 1 && at > 16; entries = entries[2:] {
			e, f := entries[0], entries[1]
			sym := uint8(e)
			shed := (s0 + t.shed[sym]) >> 16
			kept := s0 >> (shed & 63)
			acc = (acc-kept)<<(shed&63) + s0
			s0 = uint64(t.next[(kept+t.turn[sym])%(1<<blockLog)])
			raw := t.raw[sym]
			acc = acc<<(raw&63) + (e>>8 - t.base[sym])
			n += shed + raw

			sym = uint8(f)
			shed = (s1 + t.shed[sym]) >> 16
			raw = t.raw[sym]
			if n+shed+raw > 64 {
				binary.LittleEndian.PutUint64(window[at%windowBytes:at%windowBytes+8], acc<<(-n&63))
				at -= uint(n >> 3)
				n &= 7
			}
			kept = s1 >> (shed & 63)
			acc = (acc-kept)<<(shed&63) + s1
			s1 = uint64(t.next[(kept+t.turn[sym])%(1<<blockLog)])
			acc = acc<<(raw&63) + (f>>8 - t.base[sym])
			n += shed + raw

			binary.LittleEndian.PutUint64(window[at%windowBytes:at%windowBytes+8], acc<<(-n&63))
			at -= uint(n >> 3)
			n &= 7
		}
		p.at -= windowBytes - 1 - at
	}
	p.next, p.last, p.acc, p.n = s0, s1, acc, n
	for _, entry := range entries {
		p.single(entry, t)
	}
}

// windowBytes is more than the bytes of a batch of symbols of at most 28 bits.
const windowBytes = 1024

// window returns the part of the buffer for the next windowBytes. These are stored from index
// windowBytes-1 down, eight at a time.
func (p *bitPacker) window() *[windowBytes + 7]byte {
	return (*[windowBytes + 7]byte)(p.dst[p.at-(windowBytes-1):])
}

// single codes one symbol.
func (p *bitPacker) single(entry uint64, t *encodeTable) {
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

// finish writes the states and the padding before the symbols. It returns the chunk's bytes,
// which are the end of the buffer.
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

// bitReader reads the bits of a chunk.
type bitReader struct {
	src  []byte
	at   uint64 // the next bit of src; after its end there are zeros
	next uint64 // the state whose turn it is, less L
	last uint64
}

// reset starts to read a chunk. It returns false if no chunk begins with these bytes.
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

// overrun reports whether more bits were read than the chunk has.
func (r *bitReader) overrun() bool { return r.at > 8*uint64(len(r.src)) }

// done reports whether the chunk ends here, in the states from which its encoder started.
func (r *bitReader) done() bool {
	return r.at == 8*uint64(len(r.src)) && r.next == 0 && r.last == 0
}

// values decodes len(out) symbols, of at most 56 bits each. The caller must call overrun to
// find out whether the chunk has so many.
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
