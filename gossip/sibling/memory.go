package sibling

import (
	"container/list"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Memory is a [Store] in memory. It first evicts copies from siblings ([Object.Copied]) that were
// not requested again, since the cluster has them elsewhere, and then the least recently used
// objects. It is safe for concurrent use, under one lock. Make one with [NewMemory].
type Memory struct {
	held           *gossip.Holdings
	objects, bytes int64 // bounds
	variants       *rfc9111.Variants

	mu        sync.Mutex
	order     list.List // of *shelved, the last requested in front
	probation list.List // likewise, copies that were not requested again
	by        map[string]*list.Element
	used      int64 // bytes
}

type shelved struct {
	identity string
	object   *Object
	bytes    int64
	in       *list.List
}

// NewMemory returns an empty Memory for up to that many objects and bytes, headers and identities
// included; a bound below 1 is none. It advertises the objects in held; nil = nowhere.
func NewMemory(held *gossip.Holdings, objects, bytes int64) *Memory {
	return &Memory{held: held, objects: objects, bytes: bytes, by: make(map[string]*list.Element), variants: rfc9111.NewVariants()}
}

// Get returns the object of an identity, expired or not.
func (m *Memory) Get(identity string) (*Object, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.by[identity]
	if e == nil {
		return nil, false
	}
	m.promote(e)
	return e.Value.(*shelved).object, true
}

// Put stores an object, unless it alone exceeds the bound in bytes, and evicts others if necessary.
func (m *Memory) Put(identity string, o *Object) {
	s := &shelved{identity: identity, object: o, bytes: sizeOf(identity, o), in: &m.order}
	if o.Copied {
		s.in = &m.probation
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes > 0 && s.bytes > m.bytes {
		m.drop(m.by[identity])
		return
	}
	if e := m.by[identity]; e != nil {
		old := e.Value.(*shelved)
		old.in.Remove(e)
		m.used -= old.bytes
	} else {
		m.held.Add(identity)
		m.variants.Stored(identity)
	}
	m.used += s.bytes
	m.by[identity] = s.in.PushFront(s)
	for m.objects > 0 && int64(len(m.by)) > m.objects || m.bytes > 0 && m.used > m.bytes {
		m.drop(m.last(s))
	}
}

// promote moves a requested object to the front, and off probation.
func (m *Memory) promote(e *list.Element) {
	s := e.Value.(*shelved)
	if s.in == &m.order {
		m.order.MoveToFront(e)
		return
	}
	s.in.Remove(e)
	s.in = &m.order
	m.by[s.identity] = m.order.PushFront(s)
}

// last returns the object to evict next; but has just been stored, and is evicted last.
func (m *Memory) last(but *shelved) *list.Element {
	for _, l := range []*list.List{&m.probation, &m.order} {
		if e := l.Back(); e != nil && e.Value != but {
			return e
		}
	}
	return m.by[but.identity]
}

// Drop removes the object of an identity, if there is one.
func (m *Memory) Drop(identity string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(m.by[identity])
}

func (m *Memory) drop(e *list.Element) {
	if e == nil {
		return
	}
	s := e.Value.(*shelved)
	s.in.Remove(e)
	delete(m.by, s.identity)
	m.variants.Evicted(s.identity)
	m.used -= s.bytes
	m.held.Remove(s.identity)
}

// Identities yields the identities that are stored when the loop over it begins, in no order, for
// [gossip.Holdings.Reseed]. The loop may call the methods of m.
func (m *Memory) Identities() iter.Seq[string] {
	return func(yield func(string) bool) {
		m.mu.Lock()
		all := slices.Collect(maps.Keys(m.by))
		m.mu.Unlock()
		for _, identity := range all {
			if !yield(identity) {
				return
			}
		}
	}
}

// sizeOf returns the bytes of an object and its identity.
func sizeOf(identity string, o *Object) int64 {
	n := len(identity) + len(o.Body)
	for name, lines := range o.Header {
		n += len(name)
		for _, line := range lines {
			n += len(line)
		}
	}
	return int64(n)
}
