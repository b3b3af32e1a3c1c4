package digest

import (
	"encoding/binary"
	"fmt"
)

// AppendBare appends the delta's encoding without header and checksum, which saves some fifty
// bytes. It is for a carrier that transmits the versions of base and target itself. The
// receiver can then check only that the result has the target's state. base is the delta's base
// or its target; any other filter is refused with [ErrBase], and dst is returned unchanged.
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

// DecodeBare reads what [Delta.AppendBare] wrote. base is the filter that the delta starts
// from; sequence and keys are those of the target, and the sequence must be later than the
// base's. DecodeBare returns the delta and the target, as [Delta.Apply] would make it. The
// target's state is computed from the flips: the carrier must check it before either is used.
func DecodeBare(b []byte, base *Filter, sequence, keys uint64, lim Limits) (*Delta, *Filter, error) {
	lim = lim.withDefaults()
	if len(b) > lim.Bytes {
		return nil, nil, &FormatError{Field: "length", Err: fmt.Errorf("%w: %d bytes, %d allowed", ErrTooLarge, len(b), lim.Bytes)}
	}
	r := reader{b: b}
	zeros := base.geometry.Bits - base.ones
	a := r.bounded("positions set", 0, zeros)
	c := r.bounded("positions cleared", 0, base.ones)
	r.afford(lim, "positions set", 0, 16*(a+c))
	sets := r.section("positions set", zeros, a)
	clears := r.section("positions cleared", base.ones, c)
	if err := r.finish(); err != nil {
		return nil, nil, err
	}
	return base.step(sequence, keys, sets, clears)
}

// step returns the delta to a later sequence, and its target. sets has the ranks of the
// positions to set, among the clear ones, and clears those of the positions to clear, among the
// set ones.
func (f *Filter) step(sequence, keys uint64, sets, clears []uint64) (*Delta, *Filter, error) {
	if sequence <= f.version.Sequence {
		return nil, nil, fmt.Errorf("digest: delta from %v to sequence %d: %w", f.version, sequence, ErrBase)
	}
	d := f.delta()
	d.target = Version{Epoch: f.version.Epoch, Sequence: sequence}
	d.keys, d.ones = keys, f.ones+uint64(len(sets))-uint64(len(clears))
	if err := d.checkSize(); err != nil {
		return nil, nil, err
	}
	d.flips = f.unrank(sets, clears)
	target, c := d.make(f)
	d.target.State = f.version.State + c.state
	target.version = d.target
	return d, target, nil
}
