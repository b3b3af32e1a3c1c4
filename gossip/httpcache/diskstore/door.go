package diskstore

import (
	"iter"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// A Door is a store with the types of package bodies. It implements the cache's interface of stores.
type Door struct{ *Store }

// Open opens a store with these options and the hooks of a cache.
func (o Options) Open(h bodies.Hooks) (bodies.Store, error) {
	o.Hooks = h
	s, err := Open(o)
	if err != nil {
		return nil, err
	}
	return Door{s}, nil
}

// Get is [Store.Get].
func (d Door) Get(key string) (bodies.Object, bool) { return d.Store.Get(key) }

// Peek is [Store.Peek].
func (d Door) Peek(key string) (bodies.Object, bool) { return d.Store.Peek(key) }

// Describe is [Store.Describe].
func (d Door) Describe(o bodies.Object) (bodies.Described, error) {
	return d.Store.Describe(o.(*Object))
}

// Open is [Store.Open].
func (d Door) Open(o bodies.Object, about bodies.Described, a bodies.Access) (bodies.View, error) {
	held, _ := about.(*hotObject)
	return d.Store.Open(o.(*Object), held, a)
}

// Create is [Store.Create].
func (d Door) Create(key string, size int64) (*bodies.Stream, error) {
	w, err := d.Store.Create(key, size)
	if err != nil {
		return nil, err
	}
	return &w.Stream, nil
}

// Update is [Store.Update].
func (d Door) Update(o bodies.Object, m bodies.Meta) (bodies.Object, error) {
	return d.Store.Update(o.(*Object), m)
}

// DeleteObject is [Store.DeleteObject].
func (d Door) DeleteObject(o bodies.Object) bool { return d.Store.DeleteObject(o.(*Object)) }

// Labelled is [Store.Labelled].
func (d Door) Labelled(label string) iter.Seq[bodies.Object] {
	return func(yield func(bodies.Object) bool) {
		for _, o := range d.Store.Labelled(label) {
			if !yield(o) {
				return
			}
		}
	}
}

// Listed is [Store.Listed].
func (d Door) Listed() iter.Seq[bodies.Object] {
	return func(yield func(bodies.Object) bool) {
		for o := range d.Store.Listed() {
			if !yield(o) {
				return
			}
		}
	}
}
