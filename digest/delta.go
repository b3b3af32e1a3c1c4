package digest

import "fmt"

// A Delta is what changed between two versions of one cache's filter: the
// positions that flipped. It is immutable, and safe to share.
type Delta struct {
	geometry Geometry
	base     Version
	target   Version
	keys     uint64   // of the target, as the publisher states
	baseKeys uint64   // of the base, likewise; zero if the base has not been seen
	baseOnes uint64   // set positions of the base
	ones     uint64   // set positions of the target
	flips    []uint64 // ascending
}

// Base returns the version that the delta applies to.
func (d *Delta) Base() Version { return d.made().base }

// Target returns the version that results.
func (d *Delta) Target() Version { return d.made().target }

// Geometry returns the geometry of base and target.
func (d *Delta) Geometry() Geometry { return d.made().geometry }

// Len returns the number of positions that flip.
func (d *Delta) Len() int { return len(d.made().flips) }

// AppendPositions appends to dst the positions that flip, in ascending order.
func (d *Delta) AppendPositions(dst []uint64) []uint64 { return append(dst, d.made().flips...) }

// made returns d, unless it is nil.
func (d *Delta) made() *Delta {
	if d == nil {
		panic("digest: a nil Delta: use Diff, DecodeDelta, CountingFilter.AdvanceDelta or History.Since")
	}
	return d
}

// bytes is the memory that the delta occupies.
func (d *Delta) bytes() int { return 176 + 8*cap(d.flips) }

// Diff returns what turns base into target: two filters of one epoch and
// geometry, the target of a later sequence than the base or equal to it.
func Diff(base, target *Filter) (*Delta, error) {
	if base.made().version.Epoch != target.made().version.Epoch || !base.geometry.matches(target.geometry) ||
		base.version.Sequence > target.version.Sequence ||
		base.version.Sequence == target.version.Sequence && base.version != target.version {
		return nil, fmt.Errorf("digest: diff of %v (%v) and %v (%v): %w",
			base.version, base.geometry, target.version, target.geometry, ErrBase)
	}
	d := base.delta()
	d.target, d.keys, d.ones = target.version, target.keys, target.ones
	d.flips = diff(&base.pieces, &target.pieces)
	return d, nil
}

// delta returns the delta from f to f.
func (f *Filter) delta() *Delta {
	return &Delta{
		geometry: f.geometry,
		base:     f.version,
		target:   f.version,
		keys:     f.keys,
		baseKeys: f.keys,
		baseOnes: f.ones,
		ones:     f.ones,
	}
}

// Apply returns the target, given the base. Any other filter is refused with [ErrBase], and a
// result without the target's state with [ErrCorrupt]. base does not change. Time and memory
// are proportional to the number of flips, whatever the filter's size, since the target shares
// the rest with the base. The exception is a filter that has shrunk by a quarter or grown by a
// third since it was laid out: it is then written anew as a whole.
func (d *Delta) Apply(base *Filter) (*Filter, error) {
	if err := d.checkBase(base); err != nil {
		return nil, fmt.Errorf("digest: apply: %w", err)
	}
	if err := d.checkSize(); err != nil {
		return nil, err
	}
	f, changes := d.make(base)
	ones, state := base.ones+2*changes.sets-uint64(len(d.flips)), base.version.State+changes.state
	if state != d.target.State || ones != d.ones {
		return nil, fmt.Errorf("digest: delta to %v gives state %016x with %d positions, not %d: %w",
			d.target, state, ones, d.ones, ErrCorrupt)
	}
	return f, nil
}

func (d *Delta) checkBase(base *Filter) error {
	if d.made(); base == nil {
		return fmt.Errorf("%w: none given", ErrBase)
	}
	if base.version != d.base || !base.geometry.matches(d.geometry) || base.ones != d.baseOnes {
		return fmt.Errorf("%w: it starts from %v (%v, %d positions), not from %v (%v, %d positions)", ErrBase,
			d.base, d.geometry, d.baseOnes, base.version, base.geometry, base.ones)
	}
	return nil
}

// checkSize refuses a target that is too large for a filter in memory.
func (d *Delta) checkSize() error {
	if d.ones > maxPieced && !dense(d.geometry.Bits, d.ones) {
		return fmt.Errorf("digest: delta to %v: %w: %d positions, %d allowed", d.target, ErrTooLarge, d.ones, maxPieced)
	}
	return nil
}

// flip returns the target. Delta and base must be known to be right.
func (d *Delta) flip(base *Filter) *Filter {
	f, _ := d.make(base)
	return f
}

func (d *Delta) make(base *Filter) (*Filter, changes) {
	f := &Filter{geometry: base.geometry, version: d.target, keys: d.keys, ones: d.ones}
	var c changes
	switch {
	case len(d.flips) == 0:
		f.pieces = base.pieces
	case base.suits(d.ones):
		f.pieces, c = base.pieces.flip(d.flips)
	default:
		f.pieces, c = base.rewrite(d.flips, d.ones)
	}
	return f, c
}

// compose returns the delta from d's base to next's target. next's base must be d's target.
// Positions that flip twice are left out.
func (d *Delta) compose(next *Delta) (*Delta, error) {
	if next.base != d.target || !next.geometry.matches(d.geometry) || next.baseOnes != d.ones {
		return nil, fmt.Errorf("digest: compose a delta to %v with one from %v: %w", d.target, next.base, ErrBase)
	}
	out := *d
	out.target, out.keys, out.ones = next.target, next.keys, next.ones
	out.flips = inOne(make([]uint64, 0, len(d.flips)+len(next.flips)), d.flips, next.flips)
	return &out, nil
}

// inOne appends the numbers that are in exactly one of two ascending lists.
func inOne(dst, a, b []uint64) []uint64 {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			dst, a = append(dst, a[0]), a[1:]
		case b[0] < a[0]:
			dst, b = append(dst, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return append(append(dst, a...), b...)
}
