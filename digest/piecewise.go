package digest

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/summarycache/summarycache/arith"
)

// A filter in pieces is a kind of message (FORMAT.md, section 4): the positions are coded span by
// span, in pieces of equal length, so that a reader knows where each one is. Positions are uniform, so
// pieces of equal span differ little. Section II-B of Mitzenmacher's paper suggests pieces, after
// McIlroy, for a filter that is stored somewhere and looked up for a few keys. No cache writes one or
// looks a key up so: a writer and such a reader are in the tests. The pieces of a filter in memory
// (pieces.go) are different ones, a quarter as large.

const (
	checkBytes = 4
	leastPiece = checkBytes + 2 // no position, no code
)

// pieceCheck is the checksum of piece i of the filter with that state, so that a piece of another
// filter is noticed, and one in the wrong place.
func pieceCheck(state, i uint64, b []byte) uint32 {
	var d xxhash.Digest
	d.ResetWithSeed(state + i)
	d.Write(b)
	return uint32(d.Sum64())
}

// A pieceHead says where the pieces of a message are.
type pieceHead struct {
	Header
	span   uint64
	length int // of each piece, in bytes
	first  int // offset of the first one
}

// pieceHead reads what is before the pieces.
func (r *reader) pieceHead(h Header, lim Limits) pieceHead {
	d := pieceHead{Header: h}
	d.span = r.bounded("span", 1, h.Geometry.Bits)
	at := r.off
	n := r.uvarint("piece length")
	switch {
	case r.err != nil:
		return d
	case n > uint64(lim.Bytes):
		r.fail("piece length", at, fmt.Errorf("%w: %d bytes, %d allowed", ErrTooLarge, n, lim.Bytes))
	case n < leastPiece:
		r.corrupt("piece length", at, "%d bytes", n)
	}
	d.length = int(n)
	want := checksum(r.b[:r.off])
	if at = r.off; r.u32("head checksum") != want {
		r.corrupt("head checksum", at, "not %08x", want)
	}
	d.first = r.off
	return d
}

// count is the number of pieces.
func (d *pieceHead) count() uint64 { return (d.Geometry.Bits-1)/d.span + 1 }

// offset is that of piece i in the message.
func (d *pieceHead) offset(i uint64) int64 { return int64(d.first) + int64(i)*int64(d.length) }

// piece reads piece i, which the bytes b are, of at most left positions. It passes them to take, some
// at a time, and returns how many they are. take must not keep the slice.
func (d *pieceHead) piece(i uint64, b []byte, left uint64, lim Limits, take func([]uint64)) (uint64, error) {
	r := reader{b: b}
	check := r.u32("piece")
	if r.err == nil && check != pieceCheck(d.Version.State, i, b[checkBytes:]) {
		r.corrupt("piece", 0, "its check is %08x", check)
	}
	start := i * d.span
	size := min(d.span, d.Geometry.Bits-start)
	at := r.off
	x := r.bounded("piece count", 0, min(size, left))
	r.afford(lim, "piece count", at, 16*x)
	at, code := r.section("piece code", size, x)
	if r.err == nil {
		var moved []uint64
		r.coded("piece code", at, arith.DecodeSet(arith.Choose(size, x), code, size, x, func(some []uint64) {
			moved = moved[:0]
			for _, p := range some {
				moved = append(moved, start+p)
			}
			take(moved)
		}))
	}
	for ; r.err == nil && r.off < len(b); r.off++ {
		if b[r.off] != 0 {
			r.corrupt("padding", r.off, "not zero")
		}
	}
	if e, ok := r.err.(*FormatError); ok {
		e.Offset += int(d.offset(i))
	}
	return x, r.err
}

// readPieces reads all positions of a filter in pieces.
func (r *reader) readPieces(h Header, lim Limits, take func([]uint64)) {
	d := r.pieceHead(h, lim)
	left := h.Ones
	for i := uint64(0); r.err == nil && i < d.count(); i++ {
		b := r.take("piece", d.length)
		if r.err != nil {
			return
		}
		x, err := d.piece(i, b, left, lim, take)
		r.err = err
		left -= x
	}
	if r.err == nil && left > 0 {
		r.corrupt("count", h.countAt, "%d, but the pieces have %d", h.Ones, h.Ones-left)
	}
}
