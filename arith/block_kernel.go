package arith

import (
	"encoding/binary"
	"math/bits"
)

// The forms spend most of their time in the loops of this file. The coding steps are those of
// bitPacker.single, repeated here so that their variables stay in registers.

// words16 codes the blocks of 16 bits of words, at most wordBatch, from the last to the first.
func (p *bitPacker) words16(words []uint64, t *encodeTable) {
	p.reserve()
	s0, s1, acc, n, at, dst := p.next, p.last, p.acc, p.n, p.at, p.dst
	for i := len(words) - 1; i >= 0; i-- {
		w := words[i]
		block := uint16(w >> 48)
		sym := tables.ordinal16[block]
		shed := (s0 + t.shed[sym]) >> 16
		kept := s0 >> (shed & 63)
		acc = (acc-kept)<<(shed&63) + s0
		raw := t.raw[sym]
		acc = acc<<(raw&63) + (uint64(tables.place16[block]) - t.base[sym])
		n += shed + raw
		s0 = uint64(t.next[(kept+t.turn[sym])%(1<<blockLog)])

		block = uint16(w >> 32)
		sym = tables.ordinal16[block]
		shed = (s1 + t.shed[sym]) >> 16
		kept = s1 >> (shed & 63)
		acc = (acc-kept)<<(shed&63) + s1
		raw = t.raw[sym]
		acc = acc<<(raw&63) + (uint64(tables.place16[block]) - t.base[sym])
		n += shed + raw
		s1 = uint64(t.next[(kept+t.turn[sym])%(1<<blockLog)])

		binary.LittleEndian.PutUint64(dst[at:at+8:at+8], acc<<(-n&63))
		at -= uint(n >> 3)
		n &= 7

		block = uint16(w >> 16)
		sym = tables.ordinal16[block]
		shed = (s0 + t.shed[sym]) >> 16
		kept = s0 >> (shed & 63)
		acc = (acc-kept)<<(shed&63) + s0
		raw = t.raw[sym]
		acc = acc<<(raw&63) + (uint64(tables.place16[block]) - t.base[sym])
		n += shed + raw
		s0 = uint64(t.next[(kept+t.turn[sym])%(1<<blockLog)])

		block = uint16(w)
		sym = tables.ordinal16[block]
		shed = (s1 + t.shed[sym]) >> 16
		kept = s1 >> (shed & 63)
		acc = (acc-kept)<<(shed&63) + s1
		raw = t.raw[sym]
		acc = acc<<(raw&63) + (uint64(tables.place16[block]) - t.base[sym])
		n += shed + raw
		s1 = uint64(t.next[(kept+t.turn[sym])%(1<<blockLog)])

		binary.LittleEndian.PutUint64(dst[at:at+8:at+8], acc<<(-n&63))
		at -= uint(n >> 3)
		n &= 7
	}
	p.next, p.last, p.acc, p.n, p.at = s0, s1, acc, n, at
}

// gaps codes the gaps between members, from the last to the first. It returns the members whose
// gaps are not coded yet: the first one or two, or all up to a gap that needs a jump. Symbol i,
// below jump, is the class of gaps from i<<raw on. No symbol takes more than 28 bits.
func (p *bitPacker) gaps(members []uint64, t *encodeTable, raw uint, jump uint64) []uint64 {
	p.reserve()
	s0, s1, acc, n := p.next, p.last, p.acc, p.n
	jump = min(jump, maxSymbols-1)
	low := uint64(1)<<(raw&63) - 1
	window, at := p.window(), uint(windowBytes-1)
	above := members[len(members)-1]
	left := len(members) - 1
	for end := max(left-batch, 1); left > end; left -= 2 {
		between, below := members[left-1], members[left-2]
		a, b := above-between-1, between-below-1
		x, y := a>>(raw&63), b>>(raw&63)
		if x >= jump || y >= jump {
			break
		}
		above = below
		shed := (s0 + t.shed[x]) >> 16
		kept := s0 >> (shed & 63)
		acc = (acc-kept)<<(shed&63) + s0
		s0 = uint64(t.next[(kept+t.turn[x])%(1<<blockLog)])
		acc = acc<<(raw&63) + a&low
		n += shed

		shed = (s1 + t.shed[y]) >> 16
		kept = s1 >> (shed & 63)
		acc = (acc-kept)<<(shed&63) + s1
		s1 = uint64(t.next[(kept+t.turn[y])%(1<<blockLog)])
		acc = acc<<(raw&63) + b&low
		n += shed + 2*uint64(raw)

		binary.LittleEndian.PutUint64(window[at%windowBytes:at%windowBytes+8], acc<<(-n&63))
		at -= uint(n >> 3)
		n &= 7
	}
	p.next, p.last, p.acc, p.n = s0, s1, acc, n
	p.at -= windowBytes - 1 - at
	return members[:left+1]
}

// gaps decodes plain gaps, from place on, and puts the members at their ends into out. It
// returns how many these are, an even number. It stops when out is full, at a jump, and at the
// last eight bytes. No symbol takes more than 28 bits.
func (r *bitReader) gaps(out []uint64, t *decodeTable, place uint64) int {
	s0, s1, at, src := r.next, r.last, r.at, r.src
	place--
	raw := t.each
	low := uint64(1)<<(raw&63) - 1
	i := 0
	for ; i+1 < len(out) && at>>3+8 <= uint64(len(src)); i += 2 {
		e0, e1 := t.gap[s0%(1<<gapLog)], t.gap[s1%(1<<gapLog)]
		if (e0|e1)&jumpBit != 0 {
			break
		}
		x := binary.LittleEndian.Uint64(src[at>>3:at>>3+8:at>>3+8]) >> (at & 7)
		place += e0>>16 + x&low
		out[i] = place
		x >>= raw & 63
		shed := e0 & 15
		s0 = uint64(uint16(e0))>>5 + x&(1<<shed-1)
		x >>= shed
		at += shed

		place += e1>>16 + x&low
		out[i+1] = place
		x >>= raw & 63
		shed = e1 & 15
		s1 = uint64(uint16(e1))>>5 + x&(1<<shed-1)
		at += shed + 2*uint64(raw)
	}
	r.next, r.last, r.at = s0, s1, at
	return i
}

// from16 turns decoded values into words of four blocks each. It returns false if a block was
// escaped although it has a symbol.
func from16(words, values []uint64, kept *[maxSymbols]bool) bool {
	for i := range words {
		v := values[4*i:]
		v = v[:4:4]
		w := uint64(tables.unrank16[uint16(v[0])]) | uint64(tables.unrank16[uint16(v[1])])<<16 |
			uint64(tables.unrank16[uint16(v[2])])<<32 | uint64(tables.unrank16[uint16(v[3])])<<48
		words[i] = w
		if escapes := (v[0] + v[1] + v[2] + v[3]) >> 32; escapes != 0 && escapes != unkept16(w, kept) {
			return false
		}
	}
	return true
}

// unkept16 returns how many blocks of 16 bits in w must be escaped.
func unkept16(w uint64, kept *[maxSymbols]bool) uint64 {
	n := uint64(0)
	for shift := 0; shift < 64; shift += 16 {
		if !kept[tables.ordinal16[uint16(w>>shift)]] {
			n++
		}
	}
	return n
}

func popcount(words []uint64) uint64 {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return uint64(n)
}
