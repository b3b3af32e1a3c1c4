package caches

import "container/list"

// copiesShare is the part of a full cache that copies may take, as in package store of
// cmd/peer.
const copiesShare = 1. / 32

// A fewCopies is a cache that evicts copies of other caches' objects first, if it is full and
// these take more than their share. The oldest copy leaves, unless it was requested since it
// was stored: then it stays for another round.
type fewCopies struct {
	copies
	limit  int64
	sliced bool
	taken  int64     // by copies
	order  list.List // of *copied, the latest first
	at     map[uint32]*list.Element
}

type copied struct {
	object
	asked bool // requested since it was stored or last skipped
}

func newFewCopies(c copies, limit int64, sliced bool) *fewCopies {
	return &fewCopies{copies: c, limit: limit, sliced: sliced, at: map[uint32]*list.Element{}}
}

func (c *fewCopies) get(key uint32) (object, bool) {
	if e := c.at[key]; e != nil {
		e.Value.(*copied).asked = true
	}
	return c.copies.get(key)
}

func (c *fewCopies) forget(key uint32) {
	if e := c.at[key]; e != nil {
		c.taken -= weigh(c.order.Remove(e).(*copied).size)
		delete(c.at, key)
	}
}

// put stores a copy of another cache's object, or an object from the origin. The loop ends,
// because each turn removes a copy, or skips one that the next round removes.
func (c *fewCopies) put(o object, copy bool, came, left func(uint32)) bool {
	size := weigh(o.size)
	if !Fits(size, c.limit, c.sliced) {
		return false
	}
	c.drop(o.key, left)
	more := int64(0)
	if copy {
		more = size
	}
	for c.order.Len() > 0 && c.weight()+size > c.limit && float64(c.taken+more) > copiesShare*float64(c.limit) {
		e := c.order.Back()
		if first := e.Value.(*copied); first.asked {
			first.asked = false
			c.order.MoveToFront(e)
		} else {
			c.drop(first.key, left)
		}
	}
	c.copies.put(o, copy, came, func(key uint32) { c.forget(key); left(key) })
	if _, held := c.peek(o.key); held && copy {
		c.at[o.key] = c.order.PushFront(&copied{object: o})
		c.taken += size
	}
	return true
}

func (c *fewCopies) drop(key uint32, left func(uint32)) {
	c.forget(key)
	c.copies.drop(key, left)
}
