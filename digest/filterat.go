package digest

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// A FilterAt is a filter in pieces that stays where it is, on a web server for example.
// Only its index is in memory. It is immutable, and safe for concurrent use if its
// io.ReaderAt is.
type FilterAt struct {
	r      io.ReaderAt
	header Header
	limits Limits
	index  pieceIndex
}

// firstRead is how many bytes OpenFilter reads first. Most indexes fit.
const firstRead = 4 << 10

// OpenFilter reads the index of what [Filter.AppendPieces] wrote: the first 4 KiB and, if the
// index is longer, the rest of it in a second read. What r returns is checked as by
// [DecodeFilter], except that only a whole filter can be checked against the version's State.
// An error of r is returned wrapped.
func OpenFilter(r io.ReaderAt, lim Limits) (*FilterAt, error) {
	lim = lim.withDefaults()
	b, err := readUpTo(r, firstRead, 0)
	if err != nil {
		return nil, err
	}
	in := reader{b: b}
	in.open()
	kindAt := in.off
	h := in.header(lim)
	if in.err == nil && h.Kind != KindPieces {
		in.corrupt("kind", kindAt, "%v is not in pieces", h.Kind)
	}
	d := in.indexHead(h, lim)
	if end := in.off + d.length + checksumBytes; in.err == nil && end > len(b) {
		if len(b) == firstRead {
			more, err := readUpTo(r, end-len(b), int64(len(b)))
			if err != nil {
				return nil, err
			}
			in.b = append(b, more...)
		}
	}
	in.index(h, &d, lim)
	if in.err != nil {
		return nil, in.err
	}
	return &FilterAt{r: r, header: h, limits: lim, index: d}, nil
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
func (f *FilterAt) Header() Header { return f.header }

// Pieces returns how many pieces there are, one or more.
func (f *FilterAt) Pieces() int { return len(f.index.entries) }

// MayContain is [Filter.MayContain]. It reads the piece of each position of k in turn,
// until one is clear: with one hash, one piece. Each piece is checked and decoded anew,
// so for many lookups the whole filter is better.
func (f *FilterAt) MayContain(k Key) (bool, error) {
	var buf [MaxHashes]uint64
	for _, p := range f.header.Geometry.positions(&buf, k) {
		if yes, err := f.contains(p); !yes || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (f *FilterAt) contains(position uint64) (yes bool, err error) {
	i := position / f.index.span
	e := f.index.entries[i]
	b, err := readUpTo(f.r, e.length, int64(e.offset))
	if err != nil {
		return false, err
	}
	if len(b) < e.length {
		return false, &FormatError{Field: "piece", Offset: e.offset, Err: fmt.Errorf("%w: message ends", ErrCorrupt)}
	}
	p, err := f.index.open(i, b, f.header, f.limits)
	if err != nil {
		return false, err
	}
	err = p.each(func(positions []uint64) {
		_, found := slices.BinarySearch(positions, position-p.start)
		yes = yes || found
	})
	return yes && err == nil, err
}
