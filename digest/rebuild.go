package digest

import (
	"iter"
	"math"
	"slices"
)

// A touch records what happened to one key while a rebuild was under way.
type touch struct {
	before uint8 // the key was there at most so many times at first
	net    int   // additions less removals since
}

// touch records an addition or a removal of k. before is the smallest count of its positions
// until now.
func (s *shard) touch(k Key, before uint8, change int) {
	touched := s.rare.touched
	t, seen := touched[k]
	if !seen {
		t.before = before
	}
	t.net += change
	touched[k] = t
}

// Rebuild starts a new epoch with another geometry, or with the same one to reset stuck
// counters, and freezes its first version, which Current then returns. To change the
// seed while others write, use [CountingFilter.Rekey].
//
// keys must yield, at least once, every key whose Add returned before Rebuild was called
// and that is not removed meanwhile. So a writer should make an object visible to keys
// before it calls Add, and hide it after Remove. If writers do it in the other order,
// keys must first wait for the writers that are under way; when keys is called, changes are
// recorded already. Every key that is yielded is held from then on. So a writer that is
// between the two steps when the rebuild begins or ends may leave a removed key in the
// filter until the next rebuild.
//
// Keys may be added and removed while Rebuild runs, and filters read. Changes made
// meanwhile are applied in rounds, each shorter than the one before. Only the last round,
// of some hundred keys, blocks writers. Writers that sustain more than some hundred
// thousand changes a second outpace the rounds, and may wait tenths of a second for the
// last. Rebuild needs eight bytes a key while it runs. On an error nothing has changed.
func (c *CountingFilter) Rebuild(g Geometry, keys iter.Seq[Key]) error {
	return c.rebuild(g, func(r *rebuilding, old *counters) {
		r.held = slices.Compact(slices.Sorted(keys))
		for _, k := range r.held {
			r.add(k, old.additions(k))
		}
		r.catchUp(old)
		r.replace(old, c, sameName)
	})
}

// rebuild calls work to fill new counters of geometry g. Meanwhile the old counters record what
// writers do.
func (c *CountingFilter) rebuild(g Geometry, work func(r *rebuilding, old *counters)) error {
	if err := g.Validate(); err != nil {
		return err
	}
	c.building.Lock()
	defer c.building.Unlock()

	old := c.counters.Load()
	old.watch(true)
	defer old.watch(false)
	work(&rebuilding{fresh: newCounters(g.normal()), more: make(map[Key]int)}, old)
	return nil
}

// replace replaces the old counters by the new ones. renamed returns the new name of a key that
// was written meanwhile.
func (r *rebuilding) replace(old *counters, c *CountingFilter, renamed func(Key) Key) {
	c.freezing.Lock()
	defer c.freezing.Unlock()
	r.finish(old, c, renamed)
	empty := emptyFilter(r.fresh.geometry, c.current.Load().version.Epoch+1)
	c.current.Store(r.fresh.collect(empty, false).delta.flip(empty))
	r.fresh.changed()
}

// A rebuilding has new counters, and what has been added to them.
type rebuilding struct {
	fresh *counters
	held  []Key       // once each, ascending
	more  map[Key]int // how often, for those added more than once
	done  map[Key]int // how often, for those that catchUp has updated
}

func (r *rebuilding) add(k Key, times int) {
	for range times {
		r.fresh.add(k)
	}
	if times > 1 {
		r.more[k] = times
		var buf [MaxHashes]uint64
		home, _ := r.fresh.at(r.fresh.geometry.positions(&buf, k)[0])
		home.keys -= int32(times - 1)
		home.sum -= uint64(times-1) * sumOf(k)
	}
}

// additions returns how often to count a held key: once, unless its counters are higher. An
// object that is replaced by itself is added before it is removed, and the removal may come
// after the rebuild. If the counters are higher because of other keys, which is as rare as a
// false positive, a position stays set after its key has left. Stuck counters say nothing.
func (c *counters) additions(k Key) int {
	if n, _ := c.times(k); n < maxCount {
		return max(1, int(n))
	}
	return 1
}

func sameName(k Key) Key { return k }

// lastRound is how many keys can be applied while writers wait.
const lastRound = 200

// catchUp applies to the fresh counters what writers did to the old ones meanwhile. Writers go
// on. It ends when a round finds few keys, or when writers are so fast that rounds do not
// become shorter.
func (r *rebuilding) catchUp(old *counters) {
	r.done = make(map[Key]int)
	for last := math.MaxInt; ; {
		applied := 0
		for i := range old.shards {
			s := &old.shards[i]
			s.mu.Lock()
			var touched map[Key]touch
			if len(s.rare.touched) > 0 {
				touched, s.rare.touched = s.rare.touched, make(map[Key]touch)
			}
			s.mu.Unlock()
			r.apply(touched, sameName)
			applied += len(touched)
		}
		if applied <= lastRound || applied > last/2 {
			return
		}
		last = applied
	}
}

// finish applies the rest, and replaces the old counters by the fresh ones. Meanwhile writers
// wait.
func (r *rebuilding) finish(old *counters, c *CountingFilter, renamed func(Key) Key) {
	old.lockAll()
	defer old.unlockAll()
	for i := range old.shards {
		r.apply(old.shards[i].rarely().touched, renamed)
	}
	r.fresh.onChange = old.onChange
	c.counters.Store(r.fresh)
	old.retired = true
}

func (c *counters) lockAll() {
	for i := range c.shards {
		c.shards[i].mu.Lock()
	}
}

func (c *counters) unlockAll() {
	for i := range c.shards {
		c.shards[i].mu.Unlock()
	}
}

// apply does to the fresh counters what writers did to the old ones. The caller of Rebuild may
// have yielded a key before or after such a change. So the old counters decide how often the
// key was there or, if apply has seen the key before, its own record.
func (r *rebuilding) apply(touched map[Key]touch, renamed func(Key) Key) {
	for k, t := range touched {
		k = renamed(k)
		have, caughtUp := r.done[k]
		want := max(0, have+t.net)
		if !caughtUp {
			have, want = r.count(k), int(t.before)+t.net
		}
		if r.done != nil {
			r.done[k] = want
		}
		for ; have < want; have++ {
			r.fresh.add(k)
		}
		for ; have > want; have-- {
			r.fresh.remove(k)
		}
	}
}

// count returns how often k was added.
func (r *rebuilding) count(k Key) int {
	if n, ok := r.more[k]; ok {
		return n
	}
	if _, ok := slices.BinarySearch(r.held, k); ok {
		return 1
	}
	return 0
}

// watch turns the recording of touched keys on or off.
func (c *counters) watch(on bool) {
	for s := range c.locked {
		s.rarely().touched = nil
		if on {
			s.rare.touched = make(map[Key]touch)
		}
	}
}
