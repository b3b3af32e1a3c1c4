package digest

import (
	"iter"
	"sync"
	"sync/atomic"
)

// A Set has exactly the keys that one cache holds, and keeps a [CountingFilter] of them for
// publication. To add a key that is there, or to remove one that is not, changes nothing, so an
// engine may repeat its events. A planned Set gives its filter a larger geometry when it has
// outgrown the plan. A Set takes 9 to 12 bytes a key beside the filter. All methods are safe for
// concurrent use; changes of different keys rarely wait for each other.
type Set struct {
	*content
	salt    uint64 // odd
	stripes [stripes]stripe
}

// A content is what the parts of a set share.
type content struct {
	filter   *CountingFilter
	keys     atomic.Int64  // in all parts
	planned  atomic.Uint64 // keys; 0 = the geometry is the program's
	rate     float64       // of false positives that the filter is planned for
	replans  atomic.Uint64
	growing  atomic.Bool
	full     atomic.Bool // no geometry has room for more keys
	building sync.Mutex  // held while keys are moved to other counters or replaced, and by Part
	parts    []*Set      // guarded by building
}

// A stripe has the keys of one range of hashes.
type stripe struct {
	mu   sync.Mutex
	keys keyTable
	more map[Key]int // references beyond the first: see Retain
	// touched has, while the contents are moved or replaced, each key that has changed since, and
	// whether it was held before.
	touched map[Key]bool
}

const (
	stripeBits = 6
	stripes    = 1 << stripeBits
)

// NewSet returns an empty set whose filter keeps geometry g.
// epoch is as in [NewCountingFilter].
func NewSet(g Geometry, epoch uint64) (*Set, error) {
	c, err := NewCountingFilter(g, epoch)
	if err != nil {
		return nil, err
	}
	return newPart(&content{filter: c}, newSalt()), nil
}

// PlanSet returns an empty set whose filter is planned for a number of keys and a rate of false
// positives ([GeometryFor]), of keys of a profile under a seed. When it holds more keys, a goroutine plans the
// filter for twice as many as it holds, while others go on to add, remove and publish. The next
// publication is then a snapshot in a new epoch. A set never shrinks: a sparse filter costs hardly
// more than a small one. Receivers with the default [Limits] take 47 million keys at a rate of one in a thousand:
// [Limits.Accept] says so beforehand.
func PlanSet(keys uint64, falsePositives float64, p Profile, seed, epoch uint64) (*Set, error) {
	g, err := GeometryFor(keys, falsePositives)
	if err != nil {
		return nil, err
	}
	g.Profile, g.Seed = p, seed
	s, err := NewSet(g, epoch)
	if err != nil {
		return nil, err
	}
	s.planned.Store(keys)
	s.rate = falsePositives
	return s, nil
}

func newPart(c *content, salt uint64) *Set {
	s := &Set{content: c, salt: salt}
	for i := range s.stripes {
		s.stripes[i].keys.salt = salt
	}
	c.parts = append(c.parts, s)
	return s
}

// Part returns another, empty set of the same filter, for a tier or a shard of the cache. Each part
// has its own keys. The filter has the keys of all, for as long as any part has them. There is no
// way to dispose of a part: empty it by [Set.Replace].
func (s *Set) Part() *Set {
	c := s.shared()
	c.building.Lock()
	defer c.building.Unlock()
	return newPart(c, newSalt())
}

// shared returns what the parts share. It is where the zero Set, which has nothing, is found.
func (s *Set) shared() *content {
	if s == nil || s.content == nil {
		panic("digest: a nil or zero Set: use NewSet or PlanSet")
	}
	return s.content
}

// Filter returns the counting filter of the keys of all parts, to be frozen and read. Nothing but
// the set may add or remove keys.
func (s *Set) Filter() *CountingFilter { return s.shared().filter }

// Geometry returns how keys become positions at present.
func (s *Set) Geometry() Geometry { return s.shared().filter.Geometry() }

// Add says that the cache now holds k. It returns false if the set has k already. Call it before
// others can find the object here.
func (s *Set) Add(k Key) bool {
	st := s.lock(k)
	added := s.add(st, k)
	st.mu.Unlock()
	return added
}

// Remove says that the cache no longer holds k, however often it was retained. It returns false if
// the set does not have k. Call it after the object has gone.
func (s *Set) Remove(k Key) bool {
	st := s.lock(k)
	removed := s.remove(st, k)
	st.mu.Unlock()
	return removed
}

// Retain adds a reference to k, for a cache that may hold several objects of one key, and knows of
// each that comes and goes: k is held until [Set.Release] has been called as often.
func (s *Set) Retain(k Key) {
	st := s.lock(k)
	defer st.mu.Unlock()
	if s.add(st, k) {
		return
	}
	if st.more == nil {
		st.more = make(map[Key]int)
	}
	st.more[k]++
}

// Release takes away a reference. It returns false if the set does not have k.
func (s *Set) Release(k Key) bool {
	st := s.lock(k)
	defer st.mu.Unlock()
	switch n := st.more[k]; n {
	case 0:
		return s.remove(st, k)
	case 1:
		delete(st.more, k)
	default:
		st.more[k] = n - 1
	}
	return true
}

// Has reports whether the set has k. Unlike [Filter.MayContain] it is never wrong: the set has all keys.
func (s *Set) Has(k Key) bool {
	st := s.lock(k)
	defer st.mu.Unlock()
	return st.keys.has(k)
}

// Len returns how many keys the set has, with those of its other parts. A key that two parts have
// counts twice.
func (s *Set) Len() int { return int(s.shared().keys.Load()) }

// Replace makes the set, or this part of it, have the keys that seq yields and no others, as after
// an engine has listed what it holds. A key that is added or removed while Replace runs is left as
// it is then. It takes 8 to 12 bytes for each key that seq yields.
func (s *Set) Replace(seq iter.Seq[Key]) {
	c := s.shared()
	if seq == nil {
		panic("digest: Replace with nil: use an empty sequence for no keys")
	}
	c.building.Lock()
	defer c.building.Unlock()
	s.watch(nil)
	defer s.unwatch()
	var want [stripes]keyTable
	for k := range seq {
		t := &want[s.stripeOf(k)]
		t.salt = s.salt
		t.add(k)
	}
	var some []Key
	for i := range s.stripes {
		st := &s.stripes[i]
		some = st.copyTo(some[:0])
		for _, k := range some {
			s.settle(st, k, want[i].has(k))
		}
		for k := range want[i].all {
			s.settle(st, k, true)
		}
	}
}

// settle adds or removes k, unless it has changed since watch was called.
func (s *Set) settle(st *stripe, k Key, hold bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if _, changed := st.touched[k]; changed || st.keys.has(k) == hold {
		return
	}
	if hold {
		s.add(st, k)
	} else {
		s.remove(st, k)
	}
}

func (s *Set) stripeOf(k Key) uint64 { return uint64(k) * s.salt >> (64 - stripeBits) }

func (s *Set) lock(k Key) *stripe {
	s.shared()
	st := &s.stripes[s.stripeOf(k)]
	st.mu.Lock()
	return st
}

// add adds k to a locked stripe and to the filter.
func (s *Set) add(st *stripe, k Key) bool {
	if !st.keys.add(k) {
		return false
	}
	st.touch(k, false)
	s.filter.Add(k)
	if n := s.keys.Add(1); s.outgrown(n) && !s.full.Load() && s.growing.CompareAndSwap(false, true) {
		go s.growAside()
	}
	return true
}

func (s *Set) remove(st *stripe, k Key) bool {
	if !st.keys.remove(k) {
		return false
	}
	delete(st.more, k)
	st.touch(k, true)
	s.filter.Remove(k)
	s.keys.Add(-1)
	return true
}

// touch records a change of k, which was held before or not, while the contents are moved.
func (st *stripe) touch(k Key, before bool) {
	if st.touched == nil {
		return
	}
	if _, seen := st.touched[k]; !seen {
		st.touched[k] = before
	}
}

// copyTo appends the keys of a stripe to dst.
func (st *stripe) copyTo(dst []Key) []Key {
	st.mu.Lock()
	defer st.mu.Unlock()
	for k := range st.keys.all {
		dst = append(dst, k)
	}
	return dst
}
