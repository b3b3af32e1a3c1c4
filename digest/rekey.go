package digest

import (
	"cmp"
	"iter"
	"slices"
	"sync"
)

// Rekey starts a new epoch under another seed, g.Seed, and freezes its first version,
// as [CountingFilter.Rebuild] does for another geometry. For every object whose Add
// returned before Rekey was called and that is not removed meanwhile, keys yields two
// keys: the one that it was added under, and the one under g.Seed.
//
// Objects may be added and removed while Rekey runs. A writer must hold the shared side
// of writers (RLock, if that is a [sync.RWMutex]) from before it makes a key under the
// filter's Geometry().Seed until Add or Remove has returned. For its last step Rekey
// locks writers. It then calls renamed for each key that was added or removed since Rekey
// was called; renamed returns the key under g.Seed. Rekey needs sixteen bytes a key while
// it runs. Its errors are those of Rebuild.
func (c *CountingFilter) Rekey(g Geometry, keys iter.Seq2[Key, Key], writers sync.Locker, renamed func(Key) Key) error {
	return c.rebuild(g, func(r *rebuilding, old *counters) {
		for _, n := range renaming(keys) {
			r.held = append(r.held, n.now)
			r.add(n.now, old.additions(n.was))
		}
		writers.Lock()
		defer writers.Unlock()
		r.replace(old, c, renamed)
	})
}

// names are the keys of one object under two seeds.
type names struct{ was, now Key }

// renaming returns the names of each object once, in the order of the new keys.
func renaming(keys iter.Seq2[Key, Key]) []names {
	var all []names
	for was, now := range keys {
		all = append(all, names{was, now})
	}
	slices.SortFunc(all, func(a, b names) int { return cmp.Compare(a.now, b.now) })
	return slices.CompactFunc(all, func(a, b names) bool { return a.now == b.now })
}
