package digest

import (
	"encoding/binary"
	"fmt"
)

// AppendBare appends what of the delta's encoding cannot be known from its base
// and its target's version: neither header nor checksum, some fifty bytes less.
// It is for a carrier that tells the rest itself; that the result has the target's
// state is then the only check. base is the delta's base or its target; any other
// filter is refused with [ErrBase], and dst returned as it was.
func (d *Delta) AppendBare(dst []byte, base *Filter) ([]byte, error) {
	sets, clears, err := d.inContext(base)
	if err != nil {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, uint64(len(sets)))
	dst = binary.AppendUvarint(dst, uint64(len(clears)))
	dst = appendSection(dst, listed(d.geometry.Bits-d.baseOnes, sets))
	return appendSection(dst, listed(d.baseOnes, clears)), nil
}

// DecodeBareDelta reads what [Delta.AppendBare] wrote, given the filter that it
// starts from and what it leads to: a version of the same epoch and a later
// sequence, and its number of keys. Only [Delta.Apply] tells whether it does.
func DecodeBareDelta(b []byte, base *Filter, target Version, keys uint64, lim Limits) (*Delta, error) {
	lim = lim.withDefaults()
	if len(b) > lim.Bytes {
		return nil, &FormatError{Field: "length", Err: fmt.Errorf("%w: %d bytes, %d allowed", ErrTooLarge, len(b), lim.Bytes)}
	}
	if target.Epoch != base.version.Epoch || target.Sequence <= base.version.Sequence {
		return nil, fmt.Errorf("digest: bare delta from %v to %v: %w", base.version, target, ErrBase)
	}
	d := base.startDelta(target, keys)
	r := reader{b: b}
	zeros := base.geometry.Bits - base.ones
	a := r.bounded("positions set", 0, zeros)
	c := r.bounded("positions cleared", 0, base.ones)
	if r.err == nil {
		r.afford(lim, "positions set", 0, 16*(a+c))
	}
	d.ones = base.ones + a - c
	sets := r.section("positions set", zeros, a)
	clears := r.section("positions cleared", base.ones, c)
	if err := r.finish(); err != nil {
		return nil, err
	}
	d.flips = base.unrank(sets, clears)
	return d, nil
}

// startDelta makes a delta from f without flips.
func (f *Filter) startDelta(target Version, keys uint64) *Delta {
	return &Delta{geometry: f.geometry, base: f.version, target: target, keys: keys, baseKeys: f.keys, baseOnes: f.ones, ones: f.ones}
}

// DecodeBareStep is [DecodeBareDelta] for a carrier that does not say the target's
// state: the flips give it, and with it the target, as [Delta.Apply] would make it.
// Whether it is right is for the carrier to check, before either is used.
func DecodeBareStep(b []byte, base *Filter, sequence, keys uint64, lim Limits) (*Delta, *Filter, error) {
	d, err := DecodeBareDelta(b, base, Version{Epoch: base.version.Epoch, Sequence: sequence}, keys, lim)
	if err != nil {
		return nil, nil, err
	}
	return d.lead(base)
}

// lead gives the delta the state to which its flips lead, and returns its target, too.
func (d *Delta) lead(base *Filter) (*Delta, *Filter, error) {
	if d.ones > maxPieced && !dense(d.geometry.Bits, d.ones) {
		return nil, nil, fmt.Errorf("digest: bare delta: %w: %d positions, %d allowed", ErrTooLarge, d.ones, maxPieced)
	}
	f, c := d.make(base)
	d.target.State = base.version.State + c.state
	f.version = d.target
	return d, f, nil
}
