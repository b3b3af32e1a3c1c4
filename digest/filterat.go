package digest

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// A FilterAt is a filter in pieces that stays where it is, on a web server for example.
// Only its head is in memory. It is immutable, and safe for concurrent use if its
// io.ReaderAt is.
type FilterAt struct {
	r      io.ReaderAt
	limits Limits
	head   pieceHead
}

// HeadBytes is enough for the head of any filter in pieces: what is before the pieces.
const HeadBytes = 512

// OpenFilter opens what [Filter.AppendPieces] wrote. head is its first [HeadBytes] bytes, or all if
// there are fewer, which a manifest may have; if it is nil, they are read first. Then each lookup with
// one hash reads one piece, however large the filter is. What r returns is checked as by
// [DecodeFilter], except that only a whole filter can be checked against the version's State, and lim.Bytes
// bounds the length of a piece. An error of r is returned wrapped.
func OpenFilter(r io.ReaderAt, head []byte, lim Limits) (*FilterAt, error) {
	if r == nil {
		panic("digest: OpenFilter without a reader: use one of the filter in pieces")
	}
	lim = lim.withDefaults()
	if head == nil {
		var err error
		if head, err = readUpTo(r, HeadBytes, 0); err != nil {
			return nil, err
		}
	}
	in := reader{b: head}
	in.open()
	kindAt := in.off
	h := in.header(lim)
	if in.err == nil && h.Kind != KindPieces {
		in.corrupt("kind", kindAt, "%v is not in pieces", h.Kind)
	}
	d := in.pieceHead(h, lim)
	if in.err != nil {
		return nil, in.err
	}
	return &FilterAt{r: r, limits: lim, head: d}, nil
}

// readUpTo reads n bytes from offset on, or fewer at the end.
func readUpTo(r io.ReaderAt, n int, offset int64) ([]byte, error) {
	b := make([]byte, n)
	got, err := r.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("digest: reading %d bytes from %d on: %w", n, offset, err)
	}
	return b[:got], nil
}

// Header returns the filter's header.
func (f *FilterAt) Header() Header { return f.made().head.Header }

// made returns f, unless it is nil or zero.
func (f *FilterAt) made() *FilterAt {
	if f == nil || f.r == nil {
		panic("digest: a nil or zero FilterAt: use OpenFilter")
	}
	return f
}

// MayContain is [Filter.MayContain]. It reads the piece of each position of k in turn,
// until one is clear: with one hash, one piece. Each piece is checked and decoded anew,
// so for many lookups the whole filter is better.
func (f *FilterAt) MayContain(k Key) (bool, error) {
	var buf [maxHashes]uint64
	for _, p := range f.made().head.Geometry.positions(&buf, k) {
		if yes, err := f.contains(p); !yes || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (f *FilterAt) contains(position uint64) (yes bool, err error) {
	i := position / f.head.span
	at := f.head.offset(i)
	b, err := readUpTo(f.r, f.head.length, at)
	if err != nil {
		return false, err
	}
	if len(b) < f.head.length {
		return false, &FormatError{Field: "piece", Offset: int(at), Err: fmt.Errorf("%w: message ends", ErrCorrupt)}
	}
	_, err = f.head.piece(i, b, f.head.Ones, f.limits, func(positions []uint64) {
		_, found := slices.BinarySearch(positions, position)
		yes = yes || found
	})
	return yes && err == nil, err
}
