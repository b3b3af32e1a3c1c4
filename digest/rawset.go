package digest

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The codings that need no entropy coder. A reader in another language begins with these, and
// sets that do not compress are sent so (Mitzenmacher, section III, filter types).

// each yields the positions in ascending order.
func (s positionSet) each(yield func(uint64) bool) {
	for _, p := range s.list {
		if !yield(p) {
			return
		}
	}
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			if !yield(uint64(i)<<6 + uint64(bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

func (s positionSet) appendBitmap(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, (s.m+7)/8)...)
	for p := range s.each {
		dst[from+int(p>>3)] |= 1 << (p & 7)
	}
	return dst
}

// decodeBitmap decodes m bits. The caller has checked that b is as long as these.
func decodeBitmap(b []byte, m, x uint64, take func([]uint64)) error {
	ones := uint64(0)
	for _, c := range b {
		ones += uint64(bits.OnesCount8(c))
	}
	if ones != x || m%8 != 0 && b[len(b)-1]>>(m%8) != 0 {
		return fmt.Errorf("%w: not %d positions below %d", ErrCorrupt, x, m)
	}
	found := make([]uint64, 0, 64)
	for i, c := range b {
		if len(found) > cap(found)-8 {
			take(found)
			found = found[:0]
		}
		for ; c != 0; c &= c - 1 {
			found = append(found, uint64(i)<<3+uint64(bits.TrailingZeros8(c)))
		}
	}
	take(found)
	return nil
}

// gapBytes returns how many bytes appendGaps appends, or any number above limit if it is more.
func (s positionSet) gapBytes(limit uint64) (n uint64) {
	if s.x > limit {
		return s.x
	}
	next := uint64(0)
	for p := range s.each {
		n += uint64(bits.Len64((p-next)|1)+6) / 7
		next = p + 1
	}
	return n
}

func (s positionSet) appendGaps(dst []byte) []byte {
	next := uint64(0)
	for p := range s.each {
		dst = binary.AppendUvarint(dst, p-next)
		next = p + 1
	}
	return dst
}

// decodeGaps decodes x gaps. The caller has checked that b has at least a byte for each.
func decodeGaps(b []byte, m, x uint64, take func([]uint64)) error {
	found := make([]uint64, 0, 64)
	next := uint64(0)
	for i := range x {
		gap, size := minimalUvarint(b)
		if size <= 0 || gap >= m-next {
			return fmt.Errorf("%w: gap %d of %d", ErrCorrupt, i, x)
		}
		if len(found) == cap(found) {
			take(found)
			found = found[:0]
		}
		found = append(found, next+gap)
		b = b[size:]
		next += gap + 1
	}
	if len(b) != 0 {
		return fmt.Errorf("%w: %d bytes after the last gap", ErrCorrupt, len(b))
	}
	take(found)
	return nil
}
