// Package memstore keeps objects in memory, bounded in bytes: what was used last stays, and copies of what another
// cache has go first until they are requested again. It keeps nothing over a restart. [Open] is all of it.
package memstore

import (
	"fmt"
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
	least    = 4 << 10
)

// A store keeps objects in memory.
type store struct {
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

// Open returns a function that opens an empty store, for a cache. The store takes at most so many bytes, about, and at
// least 4 KiB, arriving bodies included. A body may take a quarter of them, and arriving bodies half. The function
// fails only if they are too few.
func Open(maxBytes int64) func(bodies.Hooks) (bodies.Store, error) {
	return func(h bodies.Hooks) (bodies.Store, error) {
		if maxBytes < least {
			return nil, fmt.Errorf("store: %d bytes of memory have room for no object: want at least 4 KiB, such as "+
				"64 << 20", maxBytes)
		}
		return open(maxBytes, h), nil
	}
}

func open(maxBytes int64, hooks bodies.Hooks) *store {
	hooks.SetDefaults()
	return &store{hooks: hooks, max: maxBytes, objects: map[string]*object{}, labels: map[string]map[*object]bool{}}
}

// Get returns the object under key; finding it counts as a use.
func (s *store) Get(key string) (bodies.Object, bool) {
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
func (s *store) Peek(key string) (bodies.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	return o, ok
}

// Describe returns the description of o, which was decoded when o was stored.
func (s *store) Describe(o bodies.Object) (bodies.Described, error) { return o.(*object), nil }

// Open opens the body of o.
func (s *store) Open(o bodies.Object, _ bodies.Described) (bodies.View, error) {
	return &view{of: o.(*object)}, nil
}

// Update replaces the description of o's body. See [bodies.Store].
func (s *store) Update(old bodies.Object, m bodies.Meta) (bodies.Object, error) {
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
func (s *store) Delete(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if ok {
		s.removeLocked(o)
	}
	return ok
}

// DeleteObject removes o if it is still the object under its key, and reports whether it was.
func (s *store) DeleteObject(o bodies.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.objects[o.Key()] == o.(*object)
	if there {
		s.removeLocked(o.(*object))
	}
	return there
}

// Labelled yields the objects with a label.
func (s *store) Labelled(label string) iter.Seq[bodies.Object] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return yielding(slices.Collect(maps.Keys(s.labels[label])))
}

// Listed yields the objects that are listed.
func (s *store) Listed() iter.Seq[bodies.Object] {
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
func (s *store) Keys() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Values(slices.Collect(maps.Keys(s.objects)))
}

func (s *store) bytesLocked() int64 { return s.own.bytes + s.copies.bytes + s.writing }

// Close forgets all objects. No hook is called for them.
func (s *store) Close() error {
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
func (s *store) insertLocked(o *object, m bodies.Meta) {
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

func (s *store) unlist(o *object) {
	if o.listed.Swap(false) {
		s.hooks.Unlisted(o.key)
	}
}

// removeLocked removes o, which is the object under its key.
func (s *store) removeLocked(o *object) {
	delete(s.objects, o.key)
	s.leaveLocked(o)
}

// leaveLocked undoes insertLocked for an object that is under its key no longer.
func (s *store) leaveLocked(o *object) {
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
func (s *store) makeRoomLocked() {
	for s.bytesLocked() > s.max && len(s.objects) > 0 {
		from := &s.own
		if s.copies.Len() > 1 || from.Len() == 0 {
			from = &s.copies
		}
		s.removeLocked(from.Back().Value.(*object))
	}
}
