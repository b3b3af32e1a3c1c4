// Package memstore keeps objects in memory, bounded in bytes: what was used last stays, and copies of what another
// cache has go first until they are requested again. It keeps nothing over a restart. See [bodies.Store] for its methods.
package memstore

import (
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

const (
	overhead = 1 << 10 // bytes that an object takes beside its body and description, about: decoded header, indexes
	maxData  = 1 << 20
)

// A Store keeps objects in memory. It is safe for concurrent use.
type Store struct {
	hooks bodies.Hooks
	max   int64

	mu      sync.Mutex
	objects map[string]*object
	labels  map[string]map[*object]bool
	own     order // the objects that no other cache has, or that were requested again
	copies  order // the others
	writing int64 // bytes of bodies that are arriving
	closed  bool
}

// New returns a store that takes at most so many bytes, about, arriving bodies included. A body may
// take a quarter of them, and arriving bodies half.
func New(maxBytes int64, hooks bodies.Hooks) *Store {
	hooks.SetDefaults()
	return &Store{hooks: hooks, max: maxBytes, objects: map[string]*object{}, labels: map[string]map[*object]bool{}}
}

// Open returns a function that opens such a store, for a cache.
func Open(maxBytes int64) func(bodies.Hooks) (bodies.Store, error) {
	return func(h bodies.Hooks) (bodies.Store, error) { return New(maxBytes, h), nil }
}

// Get returns the object under key; finding it counts as a use.
func (s *Store) Get(key string) (bodies.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	switch {
	case !ok:
	case o.in == &s.own:
		o.in.MoveToFront(o.place)
	default: // a copy that is requested again is worth as much as any object
		o.in.drop(o)
		o.in = &s.own
		o.in.add(o)
	}
	return o, ok
}

// Peek is Get, but does not count as a use.
func (s *Store) Peek(key string) (bodies.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	return o, ok
}

// Describe returns the description of o, which was decoded when o was stored.
func (s *Store) Describe(o bodies.Object) (bodies.Described, error) { return o.(*object), nil }

// Open opens the body of o.
func (s *Store) Open(o bodies.Object, _ bodies.Described) (bodies.View, error) {
	return &view{of: o.(*object)}, nil
}

// Update replaces the description of o's body. See [bodies.Store].
func (s *Store) Update(old bodies.Object, m bodies.Meta) (bodies.Object, error) {
	o := old.(*object)
	m.Copied = o.in == &s.copies
	fresh, err := s.describe(o.key, o.body, o.sums, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, bodies.ErrClosed
	case s.objects[o.key] != o:
		return nil, bodies.ErrGone
	case err != nil:
		s.removeLocked(o)
		return nil, err
	}
	s.insertLocked(fresh, m)
	return fresh, nil
}

// Delete removes the object under key, and reports whether there was one.
func (s *Store) Delete(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if ok {
		s.removeLocked(o)
	}
	return ok
}

// DeleteObject removes o if it is still the object under its key, and reports whether it was.
func (s *Store) DeleteObject(o bodies.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.objects[o.Key()] == o.(*object)
	if there {
		s.removeLocked(o.(*object))
	}
	return there
}

// Labelled yields the objects with a label.
func (s *Store) Labelled(label string) iter.Seq[bodies.Object] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return yielding(slices.Collect(maps.Keys(s.labels[label])))
}

// Listed yields the objects that are listed.
func (s *Store) Listed() iter.Seq[bodies.Object] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Collect(maps.Values(s.objects))
	return yielding(slices.DeleteFunc(all, func(o *object) bool { return !o.Listed() }))
}

func yielding(all []*object) iter.Seq[bodies.Object] {
	return func(yield func(bodies.Object) bool) {
		for _, o := range all {
			if !yield(o) {
				return
			}
		}
	}
}

// Keys yields all keys.
func (s *Store) Keys() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Values(slices.Collect(maps.Keys(s.objects)))
}

// Bytes returns how many bytes the store takes, about.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytesLocked()
}

func (s *Store) bytesLocked() int64 { return s.own.bytes + s.copies.bytes + s.writing }

// Close forgets all objects. No hook is called for them.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return bodies.ErrClosed
	}
	s.closed = true
	for _, o := range s.objects {
		o.stop()
	}
	clear(s.objects)
	return nil
}

// insertLocked makes o the object under its key.
func (s *Store) insertLocked(o *object, m bodies.Meta) {
	s.hooks.Stored(o.key)
	old := s.objects[o.key]
	s.objects[o.key] = o
	for _, label := range o.labels {
		if s.labels[label] == nil {
			s.labels[label] = map[*object]bool{}
		}
		s.labels[label][o] = true
	}
	if o.in = &s.own; m.Copied {
		o.in = &s.copies
	}
	o.in.add(o)
	if after := min(m.ListUntil.Sub(s.hooks.Now()), maxListed); after > 0 && !m.ListUntil.IsZero() {
		s.hooks.Listed(o.key)
		o.listed.Store(true)
		o.expiry = time.AfterFunc(after, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.unlist(o)
		})
	}
	if old != nil {
		s.leaveLocked(old)
	}
	s.makeRoomLocked()
}

// maxListed is short enough that sums of durations don't overflow.
const maxListed = time.Duration(math.MaxInt64 / 2)

func (s *Store) unlist(o *object) {
	if o.listed.Swap(false) {
		s.hooks.Unlisted(o.key)
	}
}

// removeLocked removes o, which is the object under its key.
func (s *Store) removeLocked(o *object) {
	delete(s.objects, o.key)
	s.leaveLocked(o)
}

// leaveLocked undoes insertLocked for an object that is under its key no longer.
func (s *Store) leaveLocked(o *object) {
	o.stop()
	o.in.drop(o)
	for _, label := range o.labels {
		if delete(s.labels[label], o); len(s.labels[label]) == 0 {
			delete(s.labels, label)
		}
	}
	s.unlist(o)
	s.hooks.Evicted(o.key)
}

// makeRoomLocked removes objects until the store is within its bound: first the copies that were not requested again,
// but for the last one, since another cache has them.
func (s *Store) makeRoomLocked() {
	for s.bytesLocked() > s.max && len(s.objects) > 0 {
		from := &s.own
		if s.copies.Len() > 1 || from.Len() == 0 {
			from = &s.copies
		}
		s.removeLocked(from.Back().Value.(*object))
	}
}
