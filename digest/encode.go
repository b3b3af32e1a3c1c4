package digest

// AppendTo appends the filter's smallest encoding. Equal filters give equal bytes
// on every machine.
func (f *Filter) AppendTo(dst []byte) []byte {
	start := len(dst)
	dst = appendHeader(dst, Header{
		Kind:     KindFilter,
		Geometry: f.geometry,
		Version:  f.version,
		Keys:     f.keys,
		Count:    f.ones,
	})
	dst = appendSection(dst, f.geometry.Bits, f.list())
	return seal(dst, start)
}

func (f *Filter) list() []uint64 {
	set := make([]uint64, 0, f.ones)
	c := f.cursor()
	for p, ok := c.next(); ok; p, ok = c.next() {
		set = append(set, p)
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
	if r.err == nil {
		if err := lim.allows(filterBytes(h.Geometry.Bits, h.Count) + 8*h.Count); err != nil {
			r.fail("count", r.off, err)
		} else if h.Count > maxSorted {
			r.fail("count", r.off, ErrTooLarge)
		}
	}
	set := r.section("positions", h.Geometry.Bits, h.Count)
	if err := r.finish(); err != nil {
		return nil, err
	}
	f := newFilter(h.Geometry, h.Version, h.Keys, set)
	if state := f.state(); state != h.Version.State {
		r.corrupt("state", kindAt, "positions have %016x", state)
		return nil, r.err
	}
	return f, nil
}
