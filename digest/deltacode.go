package digest

import (
	"encoding/binary"
	"fmt"
)

// AppendTo appends the delta's encoding with base as context. A receiver that holds the
// base knows which positions are set. So a position to be set is coded as its rank among
// the clear ones, and a position to be cleared as its rank among the set ones. That takes
// the entropy of the delta given the base, well below that of the XOR (Mitzenmacher,
// section IV).
//
// base may also be the target, which gives the same bytes. If base is nil, the delta is written
// plain: it is larger, and readable without the base. Any other filter is refused with
// [ErrBase], and dst is returned unchanged.
func (d *Delta) AppendTo(dst []byte, base *Filter) ([]byte, error) {
	h := Header{
		Kind:     KindDelta,
		Geometry: d.geometry,
		Version:  d.target,
		Keys:     d.keys,
		Ones:     d.ones,
		Base:     d.base,
		BaseOnes: d.baseOnes,
	}
	start := len(dst)
	if base == nil {
		h.Kind = KindPlainDelta
		dst = appendHeader(dst, h)
		dst = binary.AppendUvarint(dst, uint64(len(d.flips)))
		dst = appendSection(dst, listed(d.geometry.Bits, d.flips))
		return seal(dst, start), nil
	}
	sets, clears, err := d.inContext(base)
	if err != nil {
		return dst, err
	}
	dst = appendHeader(dst, h)
	dst = binary.AppendUvarint(dst, uint64(len(sets)))
	dst = appendSection(dst, listed(d.geometry.Bits-d.baseOnes, sets))
	dst = appendSection(dst, listed(d.baseOnes, clears))
	return seal(dst, start), nil
}

// inContext returns the flips as ranks, if f is the delta's base or target. A decoded plain
// delta may state false counts: then f is refused as well.
func (d *Delta) inContext(f *Filter) (sets, clears []uint64, err error) {
	if f == nil {
		return nil, nil, fmt.Errorf("digest: encode a delta from %v: %w: none given", d.base, ErrBase)
	}
	if (f.version == d.base || f.version == d.target) && f.geometry.matches(d.geometry) {
		sets, clears = d.ranks(f)
		if d.baseOnes+uint64(len(sets)) == d.ones+uint64(len(clears)) {
			return sets, clears, nil
		}
	}
	return nil, nil, fmt.Errorf("digest: encode a delta from %v to %v: %w: %v is neither", d.base, d.target, ErrBase, f.version)
}

// ranks returns the flips as ranks among the base's clear and set positions. f is the base or
// the target.
func (d *Delta) ranks(f *Filter) (sets, clears []uint64) {
	sets = make([]uint64, 0, len(d.flips))
	isTarget := f.version != d.base
	var places []place
	for flips := d.flips; len(flips) > 0; {
		i, n := f.inOnePiece(flips)
		places = f.places(places[:0], i, flips[:n])
		before := f.before(i)
		for j, p := range flips[:n] {
			below, set := before+places[j].rank(), places[j].found()
			if isTarget {
				below = below + uint64(len(clears)) - uint64(len(sets))
				set = !set
			}
			if set {
				clears = append(clears, below)
			} else {
				sets = append(sets, p-below)
			}
		}
		flips = flips[n:]
	}
	return sets, clears
}

// DecodeDelta reads what [Delta.AppendTo] wrote. base is the filter that the delta applies to;
// for any other filter the error wraps [ErrBase]. Only a plain delta can be read with a nil
// base. [Delta.Apply] verifies the target.
func DecodeDelta(b []byte, base *Filter, lim Limits) (*Delta, error) {
	lim = lim.withDefaults()
	r := start(b, lim)
	kindAt := r.off
	h := r.header(lim)
	if r.err != nil {
		return nil, r.err
	}
	if !h.Kind.delta() {
		r.corrupt("kind", kindAt, "%v is no delta", h.Kind)
		return nil, r.err
	}
	d := &Delta{
		geometry: h.Geometry,
		base:     h.Base,
		target:   h.Version,
		keys:     h.Keys,
		baseOnes: h.BaseOnes,
		ones:     h.Ones,
	}
	if err := r.base(d, h, base); err != nil {
		return nil, err
	}
	if h.Kind == KindDelta {
		r.contextual(d, base, lim)
	} else {
		r.plain(d, lim)
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	// If all changes were undone, a step has no flips.
	none := len(d.flips) == 0
	if step := d.base.Sequence != d.target.Sequence; !step && !none ||
		none && (d.base.State != d.target.State || d.baseOnes != d.ones) {
		r.corrupt("sequence step", h.baseAt, "%d flips from %v to %v", len(d.flips), d.base, d.target)
		return nil, r.err
	}
	return d, nil
}

// base checks that the delta applies to base.
func (r *reader) base(d *Delta, h Header, base *Filter) error {
	switch {
	case base != nil:
		if err := d.checkBase(base); err != nil {
			r.fail("base", h.baseAt, err)
		}
		d.geometry, d.baseKeys = base.geometry, base.keys
	case h.Kind == KindDelta:
		r.fail("base", h.baseAt, fmt.Errorf("%w: none given", ErrBase))
	}
	return r.err
}

func (r *reader) contextual(d *Delta, base *Filter, lim Limits) {
	zeros := d.geometry.Bits - d.baseOnes
	at := r.off
	a := r.bounded("positions set", 0, zeros)
	if r.err == nil && (d.baseOnes+a < d.ones || a > d.ones) {
		r.corrupt("positions set", at, "%d of %d lead from %d to %d", a, zeros, d.baseOnes, d.ones)
	}
	if r.err != nil {
		return
	}
	b := d.baseOnes + a - d.ones
	r.afford(lim, "positions set", at, 16*(a+b))
	sets := r.section("positions set", zeros, a)
	clears := r.section("positions cleared", d.baseOnes, b)
	if r.err == nil {
		d.flips = base.unrank(sets, clears)
	}
}

func (r *reader) plain(d *Delta, lim Limits) {
	at := r.off
	n := r.bounded("flips", 0, d.geometry.Bits)
	r.afford(lim, "flips", at, 8*n)
	d.flips = r.section("flips", d.geometry.Bits, n)
}
