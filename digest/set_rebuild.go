package digest

import (
	"iter"
	"sync"
)

// outgrown reports whether n keys are more than the filter is planned for.
func (c *content) outgrown(n int64) bool {
	planned := c.planned.Load()
	return planned > 0 && n > 0 && uint64(n) > planned
}

// growAside is grow in a goroutine of its own. It ends when the set has no more keys than it is planned
// for, or when no geometry has room for them.
func (c *content) growAside() {
	for again := true; again; {
		c.grow()
		c.growing.Store(false)
		again = c.outgrown(c.keys.Load()) && !c.full.Load() && c.growing.CompareAndSwap(false, true)
	}
}

// grow plans the filter for twice as many keys as there are, until it is large enough.
func (c *content) grow() {
	c.building.Lock()
	defer c.building.Unlock()
	for c.outgrown(c.keys.Load()) && !c.full.Load() {
		if err := c.plan(2*uint64(c.keys.Load()), c.rate); err != nil {
			c.full.Store(true)
			return
		}
		c.replans.Add(1)
	}
}

// plan gives the filter the geometry for n keys. The caller holds building.
func (c *content) plan(n uint64, falsePositives float64) error {
	g, err := GeometryFor(n, falsePositives)
	if err != nil {
		return err
	}
	now := c.filter.Geometry()
	g.Profile, g.Seed = now.Profile, now.Seed
	c.rebuild(g)
	c.planned.Store(n)
	c.rate = falsePositives
	return nil
}

// lastRound is how many keys can be moved while writers wait.
const lastRound = 200

// rebuild fills new counters with the keys of all parts. What writers change meanwhile follows in
// rounds, each shorter than the one before, unless writers are faster; the last one blocks them.
func (c *content) rebuild(g Geometry) {
	fresh := newCounters(g)
	for _, p := range c.parts {
		p.watch(func(k Key) { fresh.add(k) })
		defer p.unwatch()
	}
	for last, moved := 0, lastRound+1; moved > lastRound && (last == 0 || moved <= last/2); {
		last, moved = moved, 0
		for _, p := range c.parts {
			for i := range p.stripes {
				moved += p.stripes[i].catchUp(fresh)
			}
		}
	}
	c.lockAll()
	defer c.unlockAll()
	for _, p := range c.parts {
		for i := range p.stripes {
			p.stripes[i].apply(p.stripes[i].touched, fresh)
		}
	}
	c.filter.replace(fresh)
}

// watch begins to record the changes of each stripe, and calls have, unless it is nil, with the keys
// that the stripe had then.
func (s *Set) watch(have func(Key)) {
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		st.touched = make(map[Key]bool)
		var some []Key
		if have != nil {
			some = make([]Key, 0, st.keys.n+1)
			for k := range st.keys.all {
				some = append(some, k)
			}
		}
		st.mu.Unlock()
		for _, k := range some {
			have(k)
		}
	}
}

func (s *Set) unwatch() {
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		st.touched = nil
		st.mu.Unlock()
	}
}

// catchUp applies to the fresh counters what has changed since the last time. It returns how many
// keys were touched.
func (st *stripe) catchUp(fresh *counters) int {
	st.mu.Lock()
	touched := st.touched
	if len(touched) == 0 {
		st.mu.Unlock()
		return 0
	}
	st.touched = make(map[Key]bool)
	for k, before := range touched {
		if st.keys.has(k) == before {
			delete(touched, k)
		}
	}
	st.mu.Unlock()
	for k, before := range touched {
		fresh.change(k, !before)
	}
	return len(touched)
}

// apply is catchUp for a locked stripe.
func (st *stripe) apply(touched map[Key]bool, fresh *counters) {
	for k, before := range touched {
		if has := st.keys.has(k); has != before {
			fresh.change(k, has)
		}
	}
}

func (c *counters) change(k Key, hold bool) {
	if hold {
		c.add(k)
	} else {
		c.remove(k)
	}
}

func (c *content) lockAll() {
	for _, p := range c.parts {
		for i := range p.stripes {
			p.stripes[i].mu.Lock()
		}
	}
}

func (c *content) unlockAll() {
	for _, p := range c.parts {
		for i := range p.stripes {
			p.stripes[i].mu.Unlock()
		}
	}
}

// replace makes fresh counters the ones of c, in a new epoch, and freezes its first version. Writers
// wait, so whoever still reads the old counters reads what was true when it began.
func (c *CountingFilter) replace(fresh *counters) {
	c.freezing.Lock()
	defer c.freezing.Unlock()
	fresh.onChange = c.counters.Load().onChange
	empty := emptyFilter(fresh.geometry, c.current.Load().version.Epoch+1)
	c.current.Store(fresh.collect(empty).flip(empty))
	c.counters.Store(fresh)
	fresh.changed()
}

func (s *Set) rename(next *Set, was, now Key) {
	st := s.lock(was)
	defer st.mu.Unlock()
	st.rename(next, was, now)
}

// rename gives next the key now, with as many references as a locked stripe has of the key was.
func (st *stripe) rename(next *Set, was, now Key) {
	next.Remove(now)
	if st.keys.has(was) {
		for range 1 + st.more[was] {
			next.Retain(now)
		}
	}
}

// takeOver takes the keys of next, of which nobody else knows. The stripes of s are locked.
func (s *Set) takeOver(next *Set) {
	for i := range s.stripes {
		s.stripes[i].keys, s.stripes[i].more = next.stripes[i].keys, next.stripes[i].more
	}
}

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
