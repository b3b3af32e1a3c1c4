package digest

import (
	"fmt"

	"github.com/summarycache/summarycache/arith"
)

// AppendTo appends the filter's smallest encoding. Equal filters give equal bytes
// on every machine.
func (f *Filter) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = appendHeader(dst, f.made().header(KindFilter))
	return seal(f.positionSet().appendCode(dst), start)
}

func (f *Filter) header(k Kind) Header {
	return Header{Kind: k, Geometry: f.geometry, Version: f.version, Keys: f.keys, Ones: f.ones}
}

func (f *Filter) positionSet() positionSet {
	set := positionSet{m: f.made().geometry.Bits, x: f.ones}
	if f.bitmap {
		set.words = f.whole()
	} else {
		set.list = f.list()
	}
	return set
}

// DecodeFilter reads what [Filter.AppendTo] or [Filter.AppendPieces] wrote. Any other
// bytes give an error, without allocating beyond the limits. The positions are checked
// against the version's State. Keys and the sequence are the publisher's claims.
func DecodeFilter(b []byte, lim Limits) (*Filter, error) {
	lim = lim.withDefaults()
	r := start(b, lim)
	kindAt := r.off
	h := r.header(lim)
	if r.err == nil && h.Kind != KindFilter && h.Kind != KindPieces {
		r.corrupt("kind", kindAt, "%v is no filter", h.Kind)
	}
	f := r.filterBody(h, lim)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return f, nil
}

// filterBody reads the positions of a filter and checks that they have its state.
func (r *reader) filterBody(h Header, lim Limits) *Filter {
	if r.err != nil {
		return nil
	}
	// The positions go straight into the filter, since a list of them would take several
	// times its memory.
	f := &Filter{geometry: h.Geometry, version: h.Version, keys: h.Keys, ones: h.Ones}
	m := f.geometry.Bits
	l := formFor(m, f.ones)
	need := decodingBytes(&l, f.ones)
	if !l.bitmap && f.ones > maxPieced {
		r.fail("count", h.countAt, fmt.Errorf("%w: %d positions, %d allowed", ErrTooLarge, f.ones, maxPieced))
	}
	r.afford(lim, "count", h.countAt, need)
	if r.err != nil {
		return nil
	}
	at, code := r.off, []byte(nil)
	if h.Kind == KindFilter {
		at, code = r.code("positions", len(r.b)-r.off, m, f.ones)
	}
	if r.err != nil {
		return nil
	}
	b := newPieceBuilder(l)
	switch method := arith.Choose(m, f.ones); {
	case h.Kind == KindPieces:
		r.readPieces(h, lim, b.add)
	case l.bitmap:
		words := make([]uint64, (m+63)/64)
		r.coded("positions", at, arith.DecodeBitmap(words, method, code, m, f.ones))
		b.addWords(0, words)
	default:
		r.coded("positions", at, arith.DecodeSet(method, code, m, f.ones, b.add))
	}
	if r.err != nil {
		return nil
	}
	f.pieces = b.finish()
	if state := f.state(); state != f.version.State {
		r.corrupt("state", h.stateAt, "%016x, but the positions have %016x", f.version.State, state)
	}
	return f
}

// decodingBytes is the most memory that decoding so many positions takes. A bitmap takes an
// array and the pieces. A list takes the pieces and, if somebody has put all positions into one
// piece, that piece while it grows.
func decodingBytes(l *form, ones uint64) uint64 {
	if l.bitmap {
		return 2 * l.bytesFor(ones)
	}
	return 3 * l.bytesFor(ones)
}

// afford refuses a field whose value would take more memory than is allowed.
func (r *reader) afford(lim Limits, field string, at int, bytes uint64) {
	if r.err == nil && bytes > uint64(lim.Memory) {
		r.fail(field, at, fmt.Errorf("%w: %d bytes of memory, %d allowed", ErrTooLarge, bytes, lim.Memory))
	}
}
