package digest

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/summarycache/summarycache/arith"
)

// A filter in pieces is a kind of message (FORMAT.md, section 4): the positions are coded span by
// span, in pieces of equal length, so that a reader knows where each one is. Positions are uniform, so
// pieces of equal span differ little. Section II-B of Mitzenmacher's paper suggests pieces, after
// McIlroy, for a filter that is stored somewhere and looked up for a few keys. The pieces of a filter
// in memory (pieces.go) are different ones, a quarter as large.

// defaultPieceBytes is the mean length of a piece before it is padded, unless the writer gives another.
// The longest of a hundred thousand pieces is then about a tenth longer.
const defaultPieceBytes = 3 << 10

const (
	checkBytes = 4
	leastPiece = checkBytes + 2 // no position, no code
)

// AppendPieces appends the filter's encoding in pieces of pieceBytes on average, or of
// 3 KiB if that is zero. With the default it takes about a tenth more than
// [Filter.AppendTo]. [OpenFilter] reads single pieces of it from where it is stored, and
// [DecodeFilter] reads the whole. Equal filters in pieces of equal length have equal bytes on
// every machine.
func (f *Filter) AppendPieces(dst []byte, pieceBytes int) []byte {
	if pieceBytes <= 0 {
		pieceBytes = defaultPieceBytes
	}
	whole := len(f.positionSet().appendCode(nil))
	count := uint64(whole/pieceBytes + 1)
	span := (f.geometry.Bits-1)/count + 1
	bodies, longest := f.inSpans(span)
	// Where keys are no uniform hashes, one piece may be much longer than the others. Fewer pieces then
	// take less padding; one takes none.
	for len(bodies) > 1 && longest*len(bodies) > 2*whole+64*len(bodies) {
		span = min(2*span, f.geometry.Bits)
		bodies, longest = f.inSpans(span)
	}
	return f.appendBodies(dst, span, bodies, longest)
}

// inSpans codes the positions of each span, and returns the length of the longest code.
func (f *Filter) inSpans(span uint64) (bodies [][]byte, longest int) {
	var held []uint64 // set positions of the current piece
	from := uint64(0)
	end := func() { // of the piece that begins at from
		size, x := min(span, f.geometry.Bits-from), uint64(len(held))
		body := listed(size, held).appendSection(binary.AppendUvarint(nil, x))
		bodies, longest = append(bodies, body), max(longest, len(body))
		from, held = from+size, held[:0]
	}
	for p := range f.all() {
		for p-from >= span {
			end()
		}
		held = append(held, p-from)
	}
	for from < f.geometry.Bits {
		end()
	}
	return bodies, longest
}

func (f *Filter) appendBodies(dst []byte, span uint64, bodies [][]byte, longest int) []byte {
	start := len(dst)
	dst = appendHeader(dst, f.header(KindPieces))
	dst = binary.AppendUvarint(dst, span)
	dst = seal(binary.AppendUvarint(dst, uint64(checkBytes+longest)), start)
	padding := make([]byte, longest)
	for i, body := range bodies {
		at := len(dst)
		dst = append(dst, make([]byte, checkBytes)...)
		dst = append(append(dst, body...), padding[len(body):]...)
		binary.LittleEndian.PutUint32(dst[at:], pieceCheck(f.version.State, uint64(i), dst[at+checkBytes:]))
	}
	return seal(dst, start)
}

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
