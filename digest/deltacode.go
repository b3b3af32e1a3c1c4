package digest

import (
	"encoding/binary"
	"fmt"

	"github.com/summarycache/summarycache/arith"
)

// AppendTo appends the delta's encoding. A receiver that holds the base knows which positions are
// set. So a position to be set is coded as its rank among the clear ones, and a position to be cleared
// as its rank among the set ones. That takes the entropy of the delta given the base, well below that
// of the XOR (Mitzenmacher, section IV).
//
// base is the delta's base or its target, which gives the same bytes. Any other filter is refused with
// [ErrBase], and dst is returned unchanged.
func (d *Delta) AppendTo(dst []byte, base *Filter) ([]byte, error) {
	start := len(dst)
	head := appendHeader(dst, Header{Kind: KindDelta, Version: d.made().target, Keys: d.keys, Base: d.base})
	out, err := d.AppendBare(head, base)
	if err != nil {
		return dst, err
	}
	return seal(out, start), nil
}

// AppendBare appends what is between header and checksum: how many positions are set and cleared, and
// which. It is for a carrier that transmits the versions of base and target itself. The receiver can
// then check only that the result has the target's state. base is as for [Delta.AppendTo].
func (d *Delta) AppendBare(dst []byte, base *Filter) ([]byte, error) {
	sets, clears, err := d.made().inContext(base)
	if err != nil {
		return dst, err
	}
	a, b := uint64(len(sets)), uint64(len(clears))
	dst = append(dst, byte(min(a, manyChanges)|min(b, manyChanges)<<4))
	for _, n := range []uint64{a, b} {
		if n >= manyChanges {
			dst = binary.AppendUvarint(dst, n-manyChanges)
		}
	}
	return arith.AppendPair(dst, d.geometry.Bits-d.baseOnes, sets, d.baseOnes, clears), nil
}

// manyChanges is a number of positions that does not fit the first byte of a bare delta.
const manyChanges = 15

// inContext returns the flips as ranks, if f is the delta's base or target.
func (d *Delta) inContext(f *Filter) (sets, clears []uint64, err error) {
	if f == nil {
		return nil, nil, fmt.Errorf("digest: encode a delta from %v: %w: none given", d.base, ErrBase)
	}
	if (f.version == d.base || f.version == d.target) && f.geometry.matches(d.geometry) {
		sets, clears = d.ranks(f)
		return sets, clears, nil
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
// for any other filter, and for nil, the error wraps [ErrBase]. [Delta.Apply] verifies the target.
func DecodeDelta(b []byte, base *Filter, lim Limits) (*Delta, error) {
	lim = lim.withDefaults()
	r := start(b, lim)
	kindAt := r.off
	h := r.header(lim)
	switch {
	case r.err != nil:
		return nil, r.err
	case h.Kind != KindDelta:
		r.corrupt("kind", kindAt, "%v is no delta", h.Kind)
		return nil, r.err
	case base == nil:
		r.fail("base", h.baseAt, fmt.Errorf("%w: none given", ErrBase))
		return nil, r.err
	case base.version != h.Base:
		r.fail("base", h.baseAt, fmt.Errorf("%w: it starts from %v, not from %v", ErrBase, h.Base, base.version))
		return nil, r.err
	}
	sets, clears := r.changes(base, lim)
	if r.err != nil {
		return nil, r.err
	}
	d := base.delta()
	d.target, d.keys = h.Version, h.Keys
	d.ones = base.ones + uint64(len(sets)) - uint64(len(clears))
	d.flips = base.unrank(sets, clears)
	// If all changes were undone, a step has no flips.
	none := len(d.flips) == 0
	if step := d.base.Sequence != d.target.Sequence; !step && !none || none && d.base.State != d.target.State {
		r.corrupt("sequence step", h.baseAt, "%d flips from %v to %v", len(d.flips), d.base, d.target)
		return nil, r.err
	}
	return d, nil
}

// DecodeBare reads what [Delta.AppendBare] wrote. base is the filter that the delta starts
// from; sequence and keys are those of the target, and the sequence must be later than the
// base's. DecodeBare returns the delta and the target, as [Delta.Apply] would make it. The
// target's state is computed from the flips: the carrier must check it before either is used.
func DecodeBare(b []byte, base *Filter, sequence, keys uint64, lim Limits) (*Delta, *Filter, error) {
	lim = lim.withDefaults()
	r := reader{b: b}
	if len(b) > lim.Bytes {
		return nil, nil, r.tooLong(lim)
	}
	sets, clears := r.changes(base.made(), lim)
	switch {
	case r.err != nil:
		return nil, nil, r.err
	case sequence <= base.version.Sequence:
		return nil, nil, fmt.Errorf("digest: delta from %v to sequence %d: %w", base.version, sequence, ErrBase)
	}
	d := base.delta()
	d.target = Version{Epoch: base.version.Epoch, Sequence: sequence}
	d.keys, d.ones = keys, base.ones+uint64(len(sets))-uint64(len(clears))
	if err := d.checkSize(); err != nil {
		return nil, nil, err
	}
	d.flips = base.unrank(sets, clears)
	target, c := d.make(base)
	d.target.State = base.version.State + c.state
	target.version = d.target
	return d, target, nil
}

// changes reads the rest of the message, a bare delta: the ranks of the positions to set, among the
// clear ones of base, and of those to clear, among the set ones.
func (r *reader) changes(base *Filter, lim Limits) (sets, clears []uint64) {
	at := r.off
	counts := r.u8("counts")
	a := r.changed("positions set", uint64(counts&15))
	b := r.changed("positions cleared", uint64(counts>>4))
	zeros := base.geometry.Bits - base.ones
	if r.err == nil && (a > zeros || b > base.ones) {
		r.corrupt("counts", at, "%d of %d positions set, %d of %d cleared", a, zeros, b, base.ones)
	}
	r.afford(lim, "counts", at, 16*(a+b))
	codeAt, code := r.code("changes", len(r.b)-r.off, zeros, a)
	if r.err == nil {
		var err error
		sets, clears, err = arith.DecodePair(code, zeros, a, base.ones, b)
		r.coded("changes", codeAt, err)
	}
	return sets, clears
}

// changed reads the rest of a count that does not fit its four bits.
func (r *reader) changed(field string, n uint64) uint64 {
	if n == manyChanges {
		n += r.bounded(field, 0, maxBits)
	}
	return n
}
