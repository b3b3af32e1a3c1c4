package diskstore

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	scrubRate  = 8 << 20 // bytes a second, at most
	scrubStep  = 1 << 20 // bytes read between two pauses
	scrubParts = 256     // of a pass
)

// A scrubber reads the objects that no request reads, to find disk errors while the objects can
// still be fetched from elsewhere. Each part of a pass has its share of the objects and of the time.
// A part that takes longer, because of the limit of bytes per second, delays the next. Each start
// begins with a random part, so that a process that is often restarted also reads everything.
type scrubber struct {
	store *store
	pass  atomic.Int64 // nanoseconds; 0 = nothing is read
	debt  int64        // bytes read since the last pause
	stop  chan struct{}
	other chan struct{} // has an item when pass has changed
	done  sync.WaitGroup

	passes, bytes atomic.Uint64
}

func newScrubber(s *store, pass time.Duration) *scrubber {
	c := &scrubber{store: s, stop: make(chan struct{}), other: make(chan struct{}, 1)}
	c.pass.Store(int64(pass))
	c.done.Go(c.run)
	return c
}

// Scrub implements [Store].
func (s *store) Scrub(pass time.Duration) {
	if s.scrub.pass.Swap(int64(pass)) == int64(pass) {
		return
	}
	select {
	case s.scrub.other <- struct{}{}: // ends a pause
	default:
	}
}

func (c *scrubber) close() {
	close(c.stop)
	c.done.Wait()
}

// run makes pass after pass until close.
func (c *scrubber) run() {
	for part := rand.Uint64N(scrubParts); ; c.passes.Add(1) {
		for range scrubParts {
			for c.pass.Load() == 0 { // until it is set, or close
				select {
				case <-c.other:
				case <-c.stop:
					return
				}
			}
			if !c.part(part) {
				return
			}
			part = (part + 1) % scrubParts
		}
	}
}

// part reads a part in its share of the time, which is that of the pass as it is when the part has been read. It returns
// false if the scrubber is closed meanwhile.
func (c *scrubber) part(part uint64) bool {
	begun := time.Now()
	if !c.segments(part) || !c.files(part) {
		return false
	}
	share := max(time.Duration(c.pass.Load()), time.Second) / scrubParts
	return c.sleep(time.Until(begun.Add(share)))
}

// sleep waits for d, and returns false if the scrubber is closed meanwhile.
func (c *scrubber) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.other:
		return true
	case <-c.stop:
		return false
	}
}

// throttle pauses after n more bytes were read, once there are enough for a pause. The pause is
// their share of a pass, or longer for the limit of bytes per second. Like the methods below it
// returns false if the scrubber is closed.
func (c *scrubber) throttle(n int64) bool {
	if c.debt += n; c.debt < scrubStep {
		return true
	}
	all := max(float64(c.store.held()), 1)
	share := time.Duration(min(float64(c.debt)/all, 1./scrubParts) * float64(c.pass.Load()))
	bound := time.Duration(c.debt) * time.Second / scrubRate
	c.debt = 0
	return c.sleep(max(share, bound))
}

// segments reads the segments of a part.
func (c *scrubber) segments(part uint64) bool {
	g := c.store.segments
	var some []*segment
	g.mu.RLock()
	for n, sg := range g.all {
		if n%scrubParts == part && sg.acquire() {
			some = append(some, sg)
		}
	}
	g.mu.RUnlock()
	more := true
	for _, sg := range some {
		more = more && c.segment(sg)
		sg.release()
	}
	return more
}

// segment reads the records of a segment that are held.
func (c *scrubber) segment(sg *segment) bool {
	g := c.store.segments
	r := newEntryReader(sg.index, make([]byte, 64<<10))
	for {
		e, _, _, err := r.next()
		if err != nil {
			return true // the end, or an entry that can't be read: its object may still be readable
		}
		o, ok := c.store.peek(string(e.key))
		if !ok || !g.holds(sg, o, e.at) {
			continue
		}
		_, rec, err := g.read(o)
		switch {
		case err == nil:
			c.bytes.Add(uint64(len(rec.body)))
		case errors.Is(err, errBroken):
			c.store.dropCorrupt(o, err)
		}
		if !c.throttle(o.bytes()) {
			return false
		}
	}
}

// files reads the objects of a part that have their own files.
func (c *scrubber) files(part uint64) bool {
	var some []*object
	for o := range c.store.index.Values() {
		if !o.is(objSmall) && o.file.id%scrubParts == part {
			some = append(some, o)
		}
	}
	for _, o := range some {
		if !c.file(o) {
			return false
		}
	}
	return true
}

// file reads the file of an object.
func (c *scrubber) file(o *object) (more bool) {
	s := c.store
	if s.files.has(o.file.id) {
		return true // it is used often, and each reader checks it
	}
	f, err := s.opt.FS.Open(s.path(o.file.id))
	if err != nil {
		return true // it was removed, or can't be opened now; if that persists, its next reader finds out
	}
	defer f.Close()
	defer s.files.distrust(o.file.id) // the pages that are read here were not checked by its readers
	o.file.tail.RLock()
	t, err := readTailOf(f, o)
	o.file.tail.RUnlock()
	if err != nil {
		s.dropCorrupt(o, err)
		return true
	}
	b := blocks{store: s, f: f, body: t.body, sums: decodeUint64s(t.sums)}
	defer b.park()
	for off := int64(0); off < t.body; off += blockSize {
		got, err := b.at(off)
		if err != nil {
			s.dropCorrupt(o, err)
			return true
		}
		c.bytes.Add(uint64(len(got)))
		if !c.throttle(int64(len(got))) {
			return false
		}
	}
	return c.throttle(t.tailSize() + footerSize)
}
