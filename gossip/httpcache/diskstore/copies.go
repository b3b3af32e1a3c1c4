package diskstore

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// copiesShare: copies may take a 32nd of a full store. A smaller share costs hits of this peer, a
// larger one hits of the cluster. `sim systems` measures both.
const copiesShare = 32

// copies are the objects of which another cache has a copy ([bodies.Meta.Copied]). When the
// store is full and they take more than their share, they are evicted before other objects, the
// oldest first. But one that [bodies.Store.Get] has found stays for another round (second chance): it
// only gets a mark, so a hit takes no lock.
type copies struct {
	mu     sync.Mutex
	order  list.List    // of *object, the latest first
	grains int64        // that the copies take
	held   atomic.Int64 // grains that all objects take
}

// enter counts the room that an object takes and, if it is a copy, adds it to the order.
func (c *copies) enter(o *object) {
	c.held.Add(int64(o.grains))
	if !o.is(objCopied) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grains += int64(o.grains)
	o.turn = c.order.PushFront(o)
}

func (c *copies) leave(o *object) {
	c.held.Add(-int64(o.grains))
	if !o.is(objCopied) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grains -= int64(o.grains)
	c.order.Remove(o.turn)
}

// next returns the next copy to evict, but not the object that is coming. It returns nil if all
// objects take no more than most grains, or the copies no more than their share.
func (c *copies) next(most int64, coming *object) *object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held.Load() <= most || c.grains <= most/copiesShare {
		return nil
	}
	for range c.order.Len() {
		e := c.order.Back()
		if o := e.Value.(*object); o != coming && !o.clear(objFound) {
			return o
		}
		c.order.MoveToFront(e)
	}
	return nil
}

// spare evicts copies while all objects, including the one that is coming (nil = none), take
// more than the store's room and copies more than their share. The index then evicts other
// objects. The loop ends: each round but the last removes a copy.
func (s *store) spare(coming *object) {
	for {
		o := s.copies.next(s.most.Load(), coming)
		if o == nil || !s.removeObject(o) { // it may be on its way into the index or out of it
			return
		}
		s.evictions.Add(1)
	}
}
