package digest

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"github.com/summarycache/summarycache/arith"
)

// A filter in pieces is a kind of message (FORMAT.md, section 4): the positions are
// coded span by span, and an index before them says where each piece is. Section II-B of
// Mitzenmacher's paper suggests it, after McIlroy, for a filter that is stored somewhere
// and looked up for a few keys. The pieces of a filter in memory (pieces.go) are
// different ones, a quarter as large.

// piecesMagic replaces magic.
const piecesMagic = "SCP"

// DefaultPieceBytes is the mean length of a piece, unless the writer gives another. With one
// hash, f = 10⁻³ and a million keys the index is then as long as a piece, and a lookup reads
// the fewest bytes.
const DefaultPieceBytes = 3 << 10

const (
	checkBytes  = 4
	leastEntry  = 1 + checkBytes // of the index
	entryMemory = 24

	// mostInPiece is how many positions a piece may have. It bounds the memory that a few bytes
	// can make a reader allocate.
	mostInPiece = 1 << 20
)

// AppendPieces appends the filter's encoding in pieces of pieceBytes on average, or of
// [DefaultPieceBytes] if that is zero. It takes some eight bytes a piece more than
// [Filter.AppendTo]. [OpenFilter] reads single pieces of it from where it is stored, and
// [DecodeFilter] reads the whole. Equal filters in pieces of equal length have equal bytes on
// every machine.
func (f *Filter) AppendPieces(dst []byte, pieceBytes int) []byte {
	if pieceBytes <= 0 {
		pieceBytes = DefaultPieceBytes
	}
	whole := appendSection(nil, f.positionSet())
	pieces := (uint64(len(whole))-1)/uint64(pieceBytes) + 1
	span := (f.geometry.Bits-1)/pieces + 1
	for f.crowded(span) { // ends: a span of mostInPiece cannot be crowded
		span = (span + 1) / 2
	}
	return f.appendSpans(dst, span)
}

// crowded reports whether more than mostInPiece positions are set in some piece of this span.
func (f *Filter) crowded(span uint64) bool {
	if f.ones <= mostInPiece || span <= mostInPiece {
		return false
	}
	in, n := uint64(0), 0
	for p := range f.Positions() {
		if i := p / span; i != in {
			in, n = i, 0
		}
		if n++; n > mostInPiece {
			return true
		}
	}
	return false
}

// appendSpans appends the encoding in pieces of span positions each.
func (f *Filter) appendSpans(dst []byte, span uint64) []byte {
	start := len(dst)
	dst = appendHeader(dst, f.header(KindPieces))
	dst = binary.AppendUvarint(dst, span)

	var index, bodies []byte
	var held []uint64 // set positions of the current piece
	from := uint64(0)
	end := func() { // of the piece that begins at from
		at, size := len(bodies), min(span, f.geometry.Bits-from)
		x := uint64(len(held))
		bodies = binary.AppendUvarint(bodies, x)
		bodies = arith.AppendSet(bodies, arith.Choose(size, x), size, held)
		index = binary.AppendUvarint(index, uint64(len(bodies)-at))
		index = binary.LittleEndian.AppendUint32(index, pieceCheck(bodies[at:]))
		from, held = from+size, held[:0]
	}
	for p := range f.Positions() {
		for p-from >= span {
			end()
		}
		held = append(held, p-from)
	}
	for from < f.geometry.Bits {
		end()
	}

	dst = binary.AppendUvarint(dst, uint64(len(index)))
	dst = seal(append(dst, index...), start)
	return seal(append(dst, bodies...), start)
}

// pieceCheck is the index's checksum of a piece's bytes.
func pieceCheck(b []byte) uint32 { return uint32(xxhash.Sum64(b)) }

// A pieceEntry is the index's entry of a piece. offset is that of the piece's first byte in the
// message.
type pieceEntry struct {
	offset, length int
	check          uint32
}

// A pieceIndex is the index of a message in pieces.
type pieceIndex struct {
	span    uint64
	length  int // of the index, in bytes
	entries []pieceEntry
}

// indexHead reads the fields before the index.
func (r *reader) indexHead(h Header, lim Limits) (d pieceIndex) {
	d.span = r.bounded("span", 1, h.Geometry.Bits)
	if r.err != nil {
		return d
	}
	pieces := (h.Geometry.Bits-1)/d.span + 1
	at := r.off
	n := r.uvarint("index length")
	switch {
	case r.err != nil:
	case n > uint64(lim.Bytes):
		r.fail("index length", at, fmt.Errorf("%w: %d bytes, %d allowed", ErrTooLarge, n, lim.Bytes))
	case n/leastEntry < pieces:
		r.corrupt("index length", at, "%d bytes for %d pieces", n, pieces)
	default:
		r.afford(lim, "index length", at, n+entryMemory*pieces)
		d.length = int(n)
	}
	return d
}

// index reads the index, and the checksum of all up to its end.
func (r *reader) index(h Header, d *pieceIndex, lim Limits) {
	if r.err != nil {
		return
	}
	end := r.off + d.length
	if end > len(r.b)-checksumBytes {
		r.corrupt("index", r.off, "message ends")
		return
	}
	if got, want := xxhash.Sum64(r.b[:end]), binary.LittleEndian.Uint64(r.b[end:]); got != want {
		r.corrupt("head checksum", end, "message has %016x, not %016x", got, want)
		return
	}
	d.entries = make([]pieceEntry, (h.Geometry.Bits-1)/d.span+1)
	offset := end + checksumBytes
	at, rest := r.off, r.b[r.off:end]
	for i := range d.entries {
		length, n := minimalUvarint(rest)
		switch {
		case n <= 0 || length == 0 || len(rest) < n+checkBytes:
			r.corrupt("piece length", at, "no length and check of piece %d", i)
			return
		case length > uint64(max(0, lim.Bytes-offset-checksumBytes)):
			r.fail("piece length", at, fmt.Errorf("%w: %d bytes from %d on, %d allowed", ErrTooLarge, length, offset, lim.Bytes))
			return
		}
		d.entries[i] = pieceEntry{offset, int(length), binary.LittleEndian.Uint32(rest[n:])}
		offset += int(length)
		at, rest = at+n+checkBytes, rest[n+checkBytes:]
	}
	if len(rest) > 0 {
		r.corrupt("index", at, "%d bytes too many", len(rest))
		return
	}
	r.take("index", d.length)
	r.annotate("%d pieces of %d positions", len(d.entries), d.span)
	r.u64("head checksum")
}

// A piecePart is one piece of a message.
type piecePart struct {
	start, size uint64 // of its span of positions
	ones        uint64
	method      arith.Method
	code        []byte
	at          int // offset of the piece in the message, then of its code
}

// open checks the bytes of piece i, which begin at its offset.
func (d *pieceIndex) open(i uint64, b []byte, h Header, lim Limits) (p piecePart, err error) {
	e := d.entries[i]
	p.at, p.start = e.offset, i*d.span
	p.size = min(d.span, h.Geometry.Bits-p.start)
	if got := pieceCheck(b); got != e.check {
		return p, &FormatError{Field: "piece", Offset: e.offset, Err: fmt.Errorf("%w: its check is %08x, not %08x", ErrCorrupt, got, e.check)}
	}
	r := reader{b: b}
	p.ones = r.bounded("piece count", 0, min(p.size, h.Ones, mostInPiece))
	r.afford(lim, "piece count", 0, 16*p.ones)
	if r.err != nil {
		format := r.err.(*FormatError)
		format.Offset += e.offset
		return p, r.err
	}
	p.method, p.code = arith.Choose(p.size, p.ones), b[r.off:]
	p.at += r.off
	return p, nil
}

// each passes the positions of the piece to take, in order and some at a time, relative to the
// first position of its span. take must not keep the slice.
func (p *piecePart) each(take func([]uint64)) error {
	if err := arith.DecodeSet(p.method, p.code, p.size, p.ones, take); err != nil {
		return &FormatError{Field: "piece", Offset: p.at, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	}
	return nil
}

// readPieces reads all positions of a filter in pieces.
func (r *reader) readPieces(h Header, lim Limits, take func([]uint64)) {
	d := r.indexHead(h, lim)
	r.index(h, &d, lim)
	left := h.Ones
	var moved []uint64
	for i := 0; i < len(d.entries) && r.err == nil; i++ {
		at := r.off
		b := r.take("piece", d.entries[i].length)
		if r.err != nil {
			return
		}
		p, err := d.open(uint64(i), b, h, lim)
		if err == nil && p.ones > left {
			r.corrupt("piece count", at, "%d of %d that remain", p.ones, left)
			return
		}
		if err == nil {
			err = p.each(func(positions []uint64) {
				moved = moved[:0]
				for _, q := range positions {
					moved = append(moved, p.start+q)
				}
				take(moved)
			})
		}
		if err != nil {
			r.err = err
			return
		}
		left -= p.ones
	}
	if r.err == nil && left > 0 {
		r.corrupt("count", h.countAt, "%d, but the pieces have %d", h.Ones, h.Ones-left)
	}
}
