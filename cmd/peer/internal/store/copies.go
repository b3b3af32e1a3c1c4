package store

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// copiesShare: copies may take a 32nd of a full store. With less, this peer has fewer hits; with
// more, the cluster has fewer. `sim systems` measures both.
const copiesShare = 32

// copies are the objects of which another cache has a copy ([Meta.Copied]). When the
// store is full and they take more than their share, they are evicted before others: the
// oldest first, except that one found by [Store.Get] stays for another round (second chance).
// So hits take no lock for it.
type copies struct {
	mu     sync.Mutex
	order  list.List // of *Object, the latest first
	grains int64     // of these
	held   atomic.Int64
}

// enter and leave keep account of the room that all objects take, and of the copies.
func (c *copies) enter(o *Object) {
	c.held.Add(int64(o.grains))
	if !o.is(objCopied) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grains += int64(o.grains)
	o.turn = c.order.PushFront(o)
}

func (c *copies) leave(o *Object) {
	c.held.Add(-int64(o.grains))
	if !o.is(objCopied) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grains -= int64(o.grains)
	c.order.Remove(o.turn)
}

// next returns the copy to evict so that all objects take no more than most, or copies
// no more than their share; nil = none. It is never the object that is coming. The loop
// ends: there are no more rounds than copies.
func (c *copies) next(most int64, coming *Object) *Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held.Load() <= most || c.grains <= most/copiesShare {
		return nil
	}
	for range c.order.Len() {
		e := c.order.Back()
		if o := e.Value.(*Object); o != coming && !o.clear(objFound) {
			return o
		}
		c.order.MoveToFront(e)
	}
	return nil
}

// spare evicts copies while all objects, including the one that is coming (nil = none), take
// more than the store has room for. The index evicts what remains to be evicted. The loop
// ends: each round but the last removes a copy.
func (s *Store) spare(coming *Object) {
	for {
		o := s.copies.next(s.most.Load(), coming)
		if o == nil || !s.removeObject(o) { // or somebody else is putting it in, or taking it out
			return
		}
		s.evictions.Add(1)
	}
}
