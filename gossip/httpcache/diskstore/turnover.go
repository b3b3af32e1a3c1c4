package diskstore

import (
	"errors"
	"math"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// Turnover keeps the garbage, which is the records of removed small objects, near an eighth
// of all segments: it moves the objects of the segment that holds the least to the head, and
// removes the segment's files. The index may use neither the room of the garbage ([store.allow])
// nor that of two segments more. One is for objects that are removed during turnover; if turnover
// is too slow, the segment that holds the least is dropped with its objects. The other is for
// moved objects while their old segment still exists. So the sum stays within the store's bound.

// mostlyHeld is the share of held bytes above which moving a segment's objects isn't worth it:
// the rest may come from rounding.
const mostlyHeld = 0.97

// mostSegments is above the number of segments of which each is three quarters full. There may be
// more after the bound has grown. Then the shortest are turned over.
const mostSegments = 96

// allowance is the room that the index leaves to garbage if all segments have total bytes, which
// is more than bound if the store was larger before.
func allowance(total, bound int64) int64 {
	if total == 0 {
		return 0
	}
	return min(total, bound)/8 + 2*segmentSize(bound)
}

// garbage returns the bytes of garbage.
func (g *segments) garbage() int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.total - g.live
}

// makeRoom drops segments until need more bytes fit, which are not those of small objects.
func (g *segments) makeRoom(need int64) {
	g.appending.Lock()
	defer g.appending.Unlock()
	g.shed(need)
}

// garbageLocked reports whether there is enough garbage to turn a segment over: more than an
// eighth, and than one segment; or too many segments. g.mu is held.
func (g *segments) garbageLocked() bool {
	return len(g.all) > mostSegments || g.total-g.live > max(g.total/8, segmentSize(g.store.bound.Load()))
}

// turn wakes turnover.
func (g *segments) turn() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// run turns segments over, and follows the room that the disk has, until close.
func (g *segments) run() {
	again := time.NewTicker(measureEvery)
	defer again.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-again.C:
			if g.store.measure(false) {
				g.collect()
				g.makeRoom(0)
			}
		case <-g.wake:
			g.collect()
		}
	}
}

// collect turns segments over while there is too much garbage, or too many segments. It ends: each
// round removes a segment with garbage, and new garbage comes only from objects removed meanwhile;
// or it moves the shortest of too many segments behind the objects of the head, and so leaves fewer.
func (g *segments) collect() {
	buf := make([]byte, 256<<10)
	for {
		g.mu.RLock()
		todo := g.garbageLocked()
		g.mu.RUnlock()
		if !todo {
			return
		}
		g.appending.Lock()
		sg := g.victim(false)
		g.appending.Unlock()
		if sg == nil {
			return
		}
		if g.empty(sg, true, buf); g.closing() {
			return
		}
	}
}

func (g *segments) closing() bool {
	select {
	case <-g.stop:
		return true
	default:
		return false
	}
}

// victim returns the segment, other than the head, that holds the smallest share of its bytes, or
// the fewest bytes if there are too many segments, and marks it so that no other caller gets it. It
// returns nil if there is none, or if that segment is nearly full and anyPrice is false.
// g.appending is held.
func (g *segments) victim(anyPrice bool) (least *segment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	full := segmentSize(g.store.bound.Load())
	if g.head != nil && g.head.end > full { // the bound was higher: this one must give room as well
		g.head = nil
	}
	share := math.Inf(1)
	many := len(g.all) > mostSegments
	for _, sg := range g.all {
		if sg == g.head || sg.pins > 0 || sg.emptied {
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

// shed drops segments until there is room for need more bytes and for what turnover is moving.
// g.appending is held. It ends: each round removes a segment.
func (g *segments) shed(need int64) {
	for g.excess()+need+segmentSize(g.store.bound.Load()) > 0 {
		sg := g.victim(true)
		if sg == nil {
			return
		}
		g.empty(sg, false, make([]byte, 64<<10))
	}
}

// excess returns by how many bytes the store exceeds its bound.
func (g *segments) excess() int64 {
	s := g.store
	s.room.Lock()
	writing := s.room.writing
	s.room.Unlock()
	return s.used() + writing - s.bound.Load()
}

// empty moves the objects of a segment to the head, or drops them, and removes the segment. If the
// store closes while it moves, the next start finds the rest in the old segment.
func (g *segments) empty(sg *segment, move bool, buf []byte) {
	s := g.store
	r := newEntryReader(sg.index, buf)
	for {
		e, b, _, err := r.next()
		if err != nil {
			break // if there are more, they are dropped below
		}
		if move && g.closing() {
			return
		}
		o, ok := s.peek(string(e.key)) // e.held doesn't tell: a mark may be on its way to the disk
		if !ok || !g.holds(sg, o, e.at) {
			continue
		}
		if !move || !g.move(sg, o, b) {
			if s.removeObject(o) {
				s.evictions.Add(1)
			}
		}
	}
	g.mu.RLock()
	live := sg.live
	g.mu.RUnlock()
	if live > 0 { // its index can't be read, or is corrupt
		for o := range s.index.Values() {
			if o.is(objSmall) && g.holds(sg, o, -1) && s.removeObject(o) {
				s.evictions.Add(1)
			}
		}
	}
	g.remove(sg)
}

// holds reports whether the record of o is in a segment, at that offset unless it is -1.
func (g *segments) holds(sg *segment, o *object, at int64) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return o.is(objSmall) && o.file == &sg.file && (at < 0 || int64(o.at)*8 == at)
}

// move moves the record of o, whose entry is b, to the head. It returns false if the object must
// be dropped instead. A crash meanwhile leaves one held entry of the object, or two.
func (g *segments) move(from *segment, o *object, b []byte) bool {
	raw, r, err := g.read(o)
	switch {
	case errors.Is(err, bodies.ErrGone):
		return true
	case errors.Is(err, errBroken):
		g.store.dropCorrupt(o, err)
		return true
	case err != nil:
		return false
	}
	to, at, entryAt, err := g.append(raw[:r.size], b, stateRemoved, true)
	if err != nil {
		if !isFull(err) { // room comes when the whole segment is moved: none of another is dropped for it
			g.store.failed(err)
		}
		return false
	}
	defer g.unpin(to)
	g.mu.Lock()
	defer g.mu.Unlock()
	if o.file != &from.file || o.is(objDiscarded) {
		return true
	}
	g.store.trash.mark(to, entryAt, stateHeld)
	g.store.trash.mark(from, int64(o.entry)*8, stateRemoved)
	from.live -= o.bytes()
	g.live -= o.bytes()
	g.settleLocked(o, to, at, entryAt)
	return true
}
