package digest

import "fmt"

// Fold returns the filter of half the size that the same keys would have made:
// position p becomes p/2. Its sequence and keys are those of f; its state is its
// own. The false-positive rate of one hash doubles. Fold needs an even number of
// bits and, unless there is but one hash, a scheme under which it is exact: Double
// and Independent, and Partitioned with parts of even size.
func (f *Filter) Fold() (*Filter, error) {
	if !f.geometry.folds() {
		return nil, fmt.Errorf("digest: fold %v: %w: not exact", f.geometry, ErrGeometry)
	}
	half := f.geometry
	half.Bits /= 2
	positions := make([]uint64, 0, f.ones)
	c := f.cursor()
	for p, ok := c.next(); ok; p, ok = c.next() {
		if n := len(positions); n == 0 || positions[n-1] != p/2 {
			positions = append(positions, p/2)
		}
	}
	return derived(half, f.version, f.keys, positions), nil
}

// Union returns the filter that says yes where f or o does, as one cache holding
// the keys of both would have made it. Its epoch and sequence are f's, its state
// its own; its keys are the sum, an upper bound.
func (f *Filter) Union(o *Filter) (*Filter, error) {
	if !f.geometry.matches(o.geometry) {
		return nil, fmt.Errorf("digest: union of %v and %v: %w", f.geometry, o.geometry, ErrGeometry)
	}
	positions := make([]uint64, 0, f.ones+o.ones)
	a, b := f.cursor(), o.cursor()
	p, more := a.next()
	q, moreB := b.next()
	for more || moreB {
		switch {
		case !moreB || more && p < q:
			positions = append(positions, p)
			p, more = a.next()
		case !more || q < p:
			positions = append(positions, q)
			q, moreB = b.next()
		default:
			positions = append(positions, p)
			p, more = a.next()
			q, moreB = b.next()
		}
	}
	return derived(f.geometry, f.version, f.keys+o.keys, positions), nil
}

func derived(g Geometry, v Version, keys uint64, positions []uint64) *Filter {
	f := newFilter(g, v, keys, positions)
	f.version.State = f.state()
	return f
}
