package diskstore

import (
	"slices"
	"sync/atomic"
)

// copiesShare: copies may take a 32nd of a full store. A smaller share costs hits of this peer, a larger one hits of
// the cluster. `sim systems` measures both.
const copiesShare = 32

// copies are the objects of which another cache has a copy ([bodies.Meta.Copied]). When the store is full and they
// take more than their share, they are evicted before other objects, the oldest first. But one that
// [bodies.Store.Get] has found stays for another round (second chance): it only gets a mark, so a hit takes no lock.
// All is guarded by store.mu.
type copies struct {
	order  []*object    // the oldest first
	left   int          // objects in it that left the store, or nearly so many
	grains atomic.Int64 // that the copies take
	held   int64        // grains that all objects take
}

// add counts the room that an object takes and, if it is a copy, adds it to the order.
func (c *copies) add(o *object) {
	c.held += int64(o.grains)
	if o.is(objCopied) {
		c.grains.Add(int64(o.grains))
		c.order = append(c.order, o)
	}
}

// forget is called for an object that has left the store.
func (c *copies) forget(o *object) {
	c.held -= int64(o.grains)
	if !o.is(objCopied) {
		return
	}
	c.grains.Add(-int64(o.grains))
	if c.left++; c.left > fewLeft && c.left > len(c.order)/2 {
		c.order = slices.DeleteFunc(c.order, func(o *object) bool { return o.is(objLeft) })
		c.left = 0
	}
}

// fewLeft is how many objects that left the store may be in a list, however short it is.
const fewLeft = 64

// next returns the next copy to evict, but not the object that is coming. It returns nil if all objects take no more
// than most grains, or the copies no more than their share.
func (c *copies) next(most int64, coming *object) *object {
	if c.held <= most || c.grains.Load() <= most/copiesShare {
		return nil
	}
	for range len(c.order) {
		o := c.order[0]
		switch {
		case o.is(objLeft):
			c.order = c.order[1:]
			c.left--
		case o == coming || o.clear(objFound):
			c.order = append(c.order[1:], o)
		default:
			return o
		}
	}
	return nil
}

// spare evicts copies while all objects, including the one that is coming (nil = none), take more than the store's
// room and copies more than their share. The index then evicts other objects. The loop ends: each round but the last
// removes a copy.
func (s *store) spare(coming *object) {
	for s.copies.grains.Load() > 0 {
		s.mu.Lock()
		o := s.copies.next(s.most.Load(), coming)
		s.mu.Unlock()
		if o == nil || !s.removeObject(o) { // it may be on its way into the index or out of it
			return
		}
		s.evictions.Add(1)
	}
}
