package diskstore

import (
	"errors"
	"math"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// Turnover keeps the garbage, which is the records of removed small objects, near an eighth of all segments: it moves
// the objects of the segment that holds the least to the head, and removes the segment's files. The index may use
// neither the room of the garbage ([store.allow]) nor that of two segments more. One is for objects that are removed
// during turnover; if turnover is too slow, the segment that holds the least is dropped with the bodies in it. The other
// is for moved objects while their old segment still exists. So the sum stays within the store's bound.

// mostlyHeld is the share of held bytes above which moving a segment's objects isn't worth it: the rest may come from
// rounding.
const mostlyHeld = 0.97

// mostSegments is above the number of segments of which each is three quarters full. There may be more after the
// bound has grown. Then the shortest are turned over.
const mostSegments = 96

// allowance is the room that the index leaves to garbage if all segments have total bytes, which is more than bound
// if the store was larger before.
func allowance(total, bound int64) int64 {
	if total == 0 {
		return 0
	}
	return min(total, bound)/8 + 2*segmentSize(bound)
}

// makeRoom drops segments until the store is within its bound.
func (s *store) makeRoom() {
	s.appending.Lock()
	s.segments.shed(0)
	s.appending.Unlock()
	s.tidy()
}

// garbageLocked reports whether there is enough garbage to turn a segment over: more than an eighth, and than one
// segment; or too many segments. store.mu is held.
func (g *segments) garbageLocked() bool {
	return len(g.all) > mostSegments || g.total-g.live > max(g.total/8, segmentSize(g.store.bound.Load()))
}

// turn wakes run.
func (g *segments) turn() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// run writes removals, turns segments over, and follows the room that the disk has, until close.
func (g *segments) run() {
	again := time.NewTicker(measureEvery)
	defer again.Stop()
	for {
		fell := false
		select {
		case <-g.stop:
			return
		case <-again.C:
			fell = g.store.measure(false)
		case <-g.wake:
			g.store.flush()
		}
		g.collect()
		if fell {
			g.store.makeRoom()
		}
	}
}

// collect turns segments over while there is too much garbage, or too many segments. It ends: each round removes a
// segment with garbage, and new garbage comes only from objects removed meanwhile; or it moves the shortest of too
// many segments behind the objects of the head, and so leaves fewer. A store that is closed takes no object.
func (g *segments) collect() {
	var buf []byte
	for {
		g.store.mu.RLock()
		todo := g.garbageLocked()
		g.store.mu.RUnlock()
		if !todo {
			return
		}
		g.store.appending.Lock()
		sg := g.victim(false)
		g.store.appending.Unlock()
		if buf == nil {
			buf = make([]byte, 256<<10)
		}
		if sg == nil || !g.move(sg, buf) {
			return
		}
		g.store.tidy()
	}
}

// victim returns the segment, other than the head, that holds the smallest share of its bytes, or the fewest bytes if
// there are too many segments, and marks it so that no other caller gets it. It returns nil if there is none, or if
// that segment is nearly full and anyPrice is false. store.appending is held.
func (g *segments) victim(anyPrice bool) (least *segment) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	full := segmentSize(g.store.bound.Load())
	if g.head != nil && g.head.end > full { // the bound was higher: this one must give room as well
		g.head = nil
	}
	share := math.Inf(1)
	many := len(g.all) > mostSegments
	for _, sg := range g.all {
		if sg == g.head || sg.emptied {
			continue
		}
		part := float64(sg.live) / float64(sg.size)
		if many {
			part = float64(sg.live) / float64(full)
		}
		if part < share || part == share && sg.id < least.id {
			least, share = sg, part
		}
	}
	if least == nil || !anyPrice && share > mostlyHeld {
		return nil
	}
	least.emptied = true
	return least
}

// shed drops segments until there is room for need more bytes and for what turnover is moving. store.appending is
// held. It ends: each round but the last removes a segment, and moves at most half of its bytes.
func (g *segments) shed(need int64) {
	s := g.store
	for {
		s.room.Lock()
		writing := s.room.writing
		s.room.Unlock()
		bound := s.bound.Load()
		if s.used()+writing+need+segmentSize(bound) <= bound {
			return
		}
		if sg := g.victim(true); sg == nil || !g.dropAll(sg, make([]byte, 64<<10)) {
			return
		}
	}
}

// objects calls do for the objects whose records are in a segment, with their entries, until do returns false.
// store.appending need not be held.
func (g *segments) objects(sg *segment, end int64, buf []byte, do func(o *object, entry []byte) bool) {
	r := newEntryReader(sg.index, buf, end)
	for {
		e, b, _, err := r.next()
		if err != nil {
			break
		}
		if e.state == stateRemoval {
			continue
		}
		if o, ok := g.store.peek(string(e.key)); ok && g.has(sg, o, e.at) && !do(o, b) {
			return
		}
	}
	g.store.mu.RLock()
	live := sg.live
	g.store.mu.RUnlock()
	if live > 0 { // its index can't be read, or is corrupt
		for o := range g.store.index.Values() {
			if g.has(sg, o, 0) && !do(o, nil) {
				return
			}
		}
	}
}

// has reports whether the record of o is in a segment, at that offset unless it is 0.
func (g *segments) has(sg *segment, o *object, at uint32) bool {
	g.store.mu.RLock()
	defer g.store.mu.RUnlock()
	return o.seg == sg.id && (at == 0 || o.at == at)
}

// dropAll removes a segment with the bodies that are in it, and reports whether it could. Objects whose bodies are
// files are moved, since a small record may stand for a large body, but to no more than half of the segment's bytes,
// so that the store shrinks. store.appending is held.
func (g *segments) dropAll(sg *segment, buf []byte) bool {
	room := sg.size / 2
	g.objects(sg, sg.entries, buf, func(o *object, entry []byte) bool {
		if o.file != nil && entry != nil && o.logged() <= room {
			raw := make([]byte, o.logged())
			if r, err := g.read(o, raw); err == nil && g.carry(sg, o, raw[:r.size], entry) == nil {
				room -= o.logged()
				return true
			}
		}
		g.evict(o)
		return true
	})
	return g.remove(sg)
}

func (g *segments) evict(o *object) {
	if g.store.removeObject(o) {
		g.store.evictions.Add(1)
	}
}

// move moves the objects of a segment to the head, and removes the segment. It reports whether it could. If the store
// closes while it moves, or lacks open files or memory, the rest stay in the old segment.
func (g *segments) move(sg *segment, buf []byte) bool {
	g.store.appending.Lock()
	end := sg.entries
	g.store.appending.Unlock()
	var lacks error
	g.objects(sg, end, buf, func(o *object, entry []byte) bool {
		if entry == nil {
			g.evict(o)
		} else if err := g.moveObject(sg, o, entry); ourFault(err) || errors.Is(err, bodies.ErrClosed) {
			lacks = err
		} else if err != nil {
			g.evict(o)
		}
		return lacks == nil
	})
	g.store.appending.Lock()
	defer g.store.appending.Unlock()
	if sg.emptied = lacks == nil; !sg.emptied {
		return false
	}
	return g.remove(sg)
}

// moveObject moves the record of o, whose entry is b, to the head. After an error that is not ourFault, the object must
// be dropped instead. A crash meanwhile leaves one held entry of the object, or two.
func (g *segments) moveObject(from *segment, o *object, b []byte) error {
	s := g.store
	raw := s.records.get(o.logged())
	defer s.records.put(raw)
	r, err := g.read(o, *raw)
	switch {
	case errors.Is(err, bodies.ErrGone):
		return nil
	case errors.Is(err, errBroken):
		s.dropCorrupt(o, err)
		return nil
	case err != nil:
		return err
	}
	s.appending.Lock()
	err = g.carry(from, o, (*raw)[:r.size], b)
	s.appending.Unlock()
	if err != nil && !isFull(err) {
		s.failed(err) // if it is full, room comes when the whole segment is moved: none of another is dropped for it
	}
	return err
}

// carry appends the record and the entry of an object that is moved to the head. store.appending is held.
func (g *segments) carry(from *segment, o *object, record, entry []byte) error {
	s := g.store
	need := rounded(int64(len(record) + len(entry)))
	to, err := g.headFor(need, true)
	if err != nil {
		return err
	}
	at := uint32(to.end / 8)
	s.mu.RLock()
	gone := o.is(objDiscarded) || o.seg != from.id
	many := len(g.removed) >= manyLeft
	s.mu.RUnlock()
	if gone {
		return nil
	}
	if many {
		g.settle()
	}
	sealEntry(entry, at, o.seq)
	if _, err := to.data.WriteAt(record, to.end); err != nil {
		return err
	}
	if _, err := to.index.WriteAt(entry, to.entries); err != nil {
		return err
	}
	g.grown(to, int64(len(record)), int64(len(entry)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.is(objDiscarded) { // it left meanwhile, and its former place is removed already
		g.removed = append(g.removed, removal{seg: to.id, seq: o.seq})
		return nil
	}
	g.removed = append(g.removed, removal{seg: from.id, seq: o.seq})
	g.holdLocked(o, -o.logged())
	o.seg, o.at = to.id, at
	g.holdLocked(o, o.logged())
	return nil
}
