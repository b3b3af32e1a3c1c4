package digest

import (
	"fmt"
	"math"
)

// OnChange makes f be called when the contents begin to differ from the last frozen version, also
// by a rebuild, and perhaps more often: at least once between a freeze and the time at which Changed
// is no longer zero. So a publisher need not poll. f replaces the function of an earlier call. It
// is called by the writer, in the middle of its operation: it must not block, nor use the filter. nil means that none is called.
func (s inside) OnChange(f func()) { s.filter.now().onChange.Store(&f) }

// Follow freezes the present contents as the version after former, in former's epoch, and
// returns it with the delta from former. It is for a publisher that was restarted and has
// loaded its contents again: peers that hold former then need only the delta. If nothing has
// changed, it returns former with a delta of length zero. Call it before anything is published;
// versions frozen earlier are forgotten. The error wraps [ErrBase] if former has another
// geometry or seed.
func (s inside) Follow(former *Filter) (*Filter, *Delta, error) {
	c := s.filter
	former.made()
	c.freezing.Lock()
	defer c.freezing.Unlock()
	base := c.current.Load()
	if !base.geometry.matches(former.geometry) || former.version.Sequence == math.MaxUint64 {
		return nil, nil, fmt.Errorf("digest: %v (%v) cannot follow %v (%v): %w",
			base.version, base.geometry, former.version, former.geometry, ErrBase)
	}
	d := c.now().collect(base)
	f := *d.flip(base)
	if d.Len() == 0 {
		f = *base
	}
	f.version.Epoch, f.version.Sequence = former.version.Epoch, former.version.Sequence+1
	since, err := Diff(former, &f)
	next := &f
	if err == nil && since.Len() == 0 {
		next, since = former, former.delta()
	}
	if err != nil {
		return nil, nil, err
	}
	c.current.Store(next)
	return next, since, nil
}
