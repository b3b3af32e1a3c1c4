package digest

import "fmt"

// AppendTo appends the filter's smallest encoding. Equal filters give equal bytes
// on every machine.
func (f *Filter) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = appendHeader(dst, Header{
		Kind:     KindFilter,
		Geometry: f.geometry,
		Version:  f.version,
		Keys:     f.keys,
		Ones:     f.ones,
	})
	return seal(appendSection(dst, f.positionSet()), start)
}

func (f *Filter) positionSet() positionSet {
	set := positionSet{m: f.geometry.Bits, x: f.ones}
	if f.bitmap {
		set.words = f.whole()
	} else {
		set.list = f.list()
	}
	return set
}

// DecodeFilter reads what [Filter.AppendTo] wrote. Any other bytes give an error,
// without allocating beyond the limits. What the publisher says of itself is
// taken as said: Keys and the sequence cannot be checked here; the positions
// agree with the State.
func DecodeFilter(b []byte, lim Limits) (*Filter, error) {
	lim = lim.withDefaults()
	r := start(b, lim)
	kindAt := r.off
	h := r.header(lim)
	if r.err == nil && h.Kind != KindFilter {
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
	f := &Filter{geometry: h.Geometry, version: h.Version, keys: h.Keys, ones: h.Ones}
	m := f.geometry.Bits
	l := formFor(m, f.ones)
	r.afford(lim, "count", h.countAt, 8*f.ones+l.bytesFor(f.ones))
	set := r.section("positions", m, f.ones, l.bitmap)
	if r.err != nil {
		return nil
	}
	b := newPieceBuilder(l)
	if l.bitmap {
		b.addWords(0, set.words)
	} else {
		b.add(set.list)
	}
	f.pieces = b.finish()
	if state := f.state(); state != f.version.State {
		r.corrupt("state", h.stateAt, "%016x, but the positions have %016x", f.version.State, state)
	}
	return f
}

// afford refuses what a field asks for if it would take more memory than allowed.
func (r *reader) afford(lim Limits, field string, at int, bytes uint64) {
	if r.err == nil && bytes > uint64(lim.Memory) {
		r.fail(field, at, fmt.Errorf("%w: %d bytes of memory, %d allowed", ErrTooLarge, bytes, lim.Memory))
	}
}
