package digest

import (
	"fmt"
	"iter"
	"math"
	"sync"
)

// Inside returns what other packages of this module need of a set beside its other methods. It is promised to nobody.
func (s *Set) Inside() inside { s.shared(); return inside{s} }

// inside is a [Set] with the methods that plan, rebuild and publish it.
type inside struct{ *Set }

// Planned returns the number of keys that the filter is planned for; 0 for [NewSet].
func (s inside) Planned() uint64 { return s.planned.Load() }

// Replans returns how often the set has outgrown its filter.
func (s inside) Replans() uint64 { return s.replans.Load() }

// Outgrown reports whether the set has more keys than its filter is planned for, so that there are
// more false positives: for as long as it takes to plan it anew, or for good if so many keys need more
// than 2^44.
func (s inside) Outgrown() bool { return s.outgrown(s.keys.Load()) }

// Settle waits until the filter is planned for the keys that the set has. A cache that fills its set
// calls it before the first publication, which would otherwise be repeated in a new epoch.
func (s inside) Settle() { s.grow() }

// Replan plans a set made by [PlanSet] for another number of keys and rate of false positives, as Rebuild does. If there
// are more keys already, the filter is planned for twice as many as there are. On an error nothing has changed.
func (s inside) Replan(keys uint64, falsePositives float64) error {
	s.building.Lock()
	defer s.building.Unlock()
	if held := uint64(max(0, s.keys.Load())); held > keys {
		keys = 2 * held
	}
	if err := s.plan(keys, falsePositives); err != nil {
		return err
	}
	s.full.Store(false)
	return nil
}

// Rebuild gives the filter of a set made by [NewSet] another geometry with the same seed, or the same
// one to reset stuck counters, and freezes the first version of a new epoch, which
// CountingFilter.Current then returns. Keys may be added and removed meanwhile, and filters read. Only
// the last step, of some hundred keys, blocks writers. Rebuild takes the memory of a second filter while
// it runs. On an error nothing has changed.
func (s inside) Rebuild(g Geometry) error {
	if err := g.validate(); err != nil {
		return err
	}
	s.building.Lock()
	defer s.building.Unlock()
	s.rebuild(g.normal())
	return nil
}

// Rekey gives the set the keys of the same objects under another seed, g.Seed, and geometry g, in a new
// epoch as Rebuild does. For every object that is held when Rekey is called, and not removed
// meanwhile, keys yields at least once the key that it has and the one under g.Seed. An object that
// keys omits is no longer held afterwards.
//
// Objects may be added and removed while Rekey runs. A writer must hold the shared side of writers
// (RLock, if that is a [sync.RWMutex]) from before it makes a key under Geometry().Seed until the
// method that it is for has returned. For its last step Rekey locks writers. It then calls renamed for
// each key that was changed since Rekey was called; renamed returns the key under g.Seed. Rekey takes
// the memory of a second set while it runs.
func (s inside) Rekey(g Geometry, keys iter.Seq2[Key, Key], writers sync.Locker, renamed func(Key) Key) error {
	c := s.content
	if err := g.validate(); err != nil {
		return err
	}
	c.building.Lock()
	defer c.building.Unlock()
	next := &content{}
	for _, p := range c.parts {
		newPart(next, p.salt)
		p.watch(nil)
		defer p.unwatch()
	}
	next.filter = new(CountingFilter)
	next.filter.counters.Store(newCounters(g.normal()))
	for was, now := range keys {
		for i, p := range c.parts {
			p.rename(next.parts[i], was, now)
		}
	}
	writers.Lock()
	defer writers.Unlock()
	c.lockAll()
	defer c.unlockAll()
	for i, p := range c.parts {
		for j := range p.stripes {
			for k := range p.stripes[j].touched {
				p.stripes[j].rename(next.parts[i], k, renamed(k))
			}
		}
	}
	for i, p := range c.parts {
		p.takeOver(next.parts[i])
	}
	c.keys.Store(next.keys.Load())
	c.filter.replace(next.filter.counters.Load())
	return nil
}

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

// Saturated returns how many counters are stuck at 15 until the next Rebuild.
func (s inside) Saturated() (n int) {
	for shard := range s.filter.now().locked {
		n += int(shard.saturated)
	}
	return n
}

// Crowded returns an error if far fewer positions of the last frozen version are set than so many keys
// set, and nil otherwise: then most keys share a few positions, and absent ones do, too. Such keys are
// no uniform hashes: make them by [KeyOf] or [KeyOfUint64].
func (s inside) Crowded() error {
	f := s.filter.Current()
	const few = 16 // keys may share positions by chance
	fill, _ := f.geometry.predict(f.keys)
	if want := fill * float64(f.geometry.Bits); f.keys > few && float64(f.ones) < want/2 {
		return fmt.Errorf("digest: %w: %d keys set %d positions, uniform ones set %.0f: see KeyOfUint64", errGeometry, f.keys, f.ones, want)
	}
	return nil
}
