package digest

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
