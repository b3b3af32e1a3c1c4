package digest

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// A coding is a way to write a set of positions: FORMAT.md, section 5.
type coding uint8

const (
	codingBitmap coding = 0 // one bit a position
	codingGaps   coding = 1 // a uvarint for each gap
)

// appendSection writes a set by the coding that makes it smallest. Of two equal
// ones the lower wins, so that equal sets give equal bytes.
func appendSection(dst []byte, m uint64, set []uint64) []byte {
	gaps, bitmap := gapBytes(set), (m+7)/8
	if bitmap <= gaps {
		dst = append(dst, byte(codingBitmap))
		dst = binary.AppendUvarint(dst, bitmap)
		return appendBitmap(dst, m, set)
	}
	dst = append(dst, byte(codingGaps))
	dst = binary.AppendUvarint(dst, gaps)
	return appendGaps(dst, set)
}

// section reads a set of x positions in [0, m). The caller has bounded x.
func (r *reader) section(field string, m, x uint64) []uint64 {
	at := r.off
	c := coding(r.u8(field + " coding"))
	lengthAt := r.off
	n := r.uvarint(field + " length")
	if r.err == nil && n > uint64(len(r.b)-r.off) {
		r.corrupt(field+" length", lengthAt, "%d bytes of %d", n, len(r.b)-r.off)
	}
	if r.err != nil {
		return nil
	}
	body := r.off
	payload := r.take(field, int(n))
	var set []uint64
	var err error
	switch c {
	case codingBitmap:
		set, err = decodeBitmap(payload, m, x)
	case codingGaps:
		set, err = decodeGaps(payload, m, x)
	default:
		r.corrupt(field+" coding", at, "%d", c)
	}
	if err != nil {
		r.fail(field, body, err)
		return nil
	}
	return set
}

func appendBitmap(dst []byte, m uint64, set []uint64) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, (m+7)/8)...)
	for _, p := range set {
		dst[from+int(p>>3)] |= 1 << (p & 7)
	}
	return dst
}

func decodeBitmap(b []byte, m, x uint64) ([]uint64, error) {
	if uint64(len(b)) != (m+7)/8 {
		return nil, fmt.Errorf("%w: %d bytes for %d bits", ErrCorrupt, len(b), m)
	}
	set := make([]uint64, 0, min(x, m))
	for i, c := range b {
		for ; c != 0; c &= c - 1 {
			if uint64(len(set)) == x {
				return nil, fmt.Errorf("%w: more than %d positions", ErrCorrupt, x)
			}
			set = append(set, uint64(i)<<3+uint64(bits.TrailingZeros8(c)))
		}
	}
	if uint64(len(set)) != x || x > 0 && set[x-1] >= m {
		return nil, fmt.Errorf("%w: not %d positions below %d", ErrCorrupt, x, m)
	}
	return set, nil
}

// gapBytes is the length of what appendGaps appends.
func gapBytes(set []uint64) (n uint64) {
	next := uint64(0)
	for _, p := range set {
		n++
		for gap := p - next; gap >= 0x80; gap >>= 7 {
			n++
		}
		next = p + 1
	}
	return n
}

func appendGaps(dst []byte, set []uint64) []byte {
	next := uint64(0)
	for _, p := range set {
		dst = binary.AppendUvarint(dst, p-next)
		next = p + 1
	}
	return dst
}

func decodeGaps(b []byte, m, x uint64) ([]uint64, error) {
	if uint64(len(b)) < x {
		return nil, fmt.Errorf("%w: %d bytes for %d gaps", ErrCorrupt, len(b), x)
	}
	set := make([]uint64, 0, x)
	next := uint64(0)
	for range x {
		gap, n := minimalUvarint(b)
		if n <= 0 || gap >= m-next {
			return nil, fmt.Errorf("%w: gap %d of %d", ErrCorrupt, len(set), x)
		}
		b = b[n:]
		set = append(set, next+gap)
		next += gap + 1
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("%w: %d bytes after the last gap", ErrCorrupt, len(b))
	}
	return set, nil
}
