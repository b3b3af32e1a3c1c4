package store

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	scrubRate = 8 << 20 // bytes a second, at most
	scrubStep = 1 << 20 // bytes read between two pauses
)

// A scrubber reads what nobody asks for, to find what the disk has spoiled while it
// can be had again from elsewhere. It goes through the files directory by
// directory, which takes no memory, from a random one on, so that a process that is
// started often comes round too. Each directory has its share of the time of a
// pass, and a directory that takes longer, because of the bound of bytes a second,
// delays the next. What it brings into the system's page cache it has dropped
// again, but of files that others use it drops nothing.
type scrubber struct {
	store *Store
	pass  time.Duration
	debt  int64 // bytes read and not waited for yet
	buf   []byte
	stop  chan struct{}
	done  sync.WaitGroup

	passes, bytes atomic.Uint64
}

func newScrubber(s *Store, pass time.Duration) *scrubber {
	c := &scrubber{store: s, pass: max(pass, time.Second), buf: make([]byte, 4<<10), stop: make(chan struct{})}
	if pass > 0 {
		c.done.Go(c.run)
	}
	return c
}

func (c *scrubber) close() {
	close(c.stop)
	c.done.Wait()
}

// run makes pass after pass until close. A pass ends: it reads each directory once.
func (c *scrubber) run() {
	for shard := rand.IntN(shards); ; c.passes.Add(1) {
		for range shards {
			end := time.Now().Add(c.pass / shards)
			if !c.directory(shard) || !c.sleep(time.Until(end)) {
				return
			}
			shard = (shard + 1) % shards
		}
	}
}

// sleep reports whether there is more to do after d.
func (c *scrubber) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.stop:
		return false
	}
}

// paid waits for what n bytes cost, when it is worth it: their share of a pass, and
// what the bound asks for. It reports whether there is
// more to do.
func (c *scrubber) paid(n int64) bool {
	if c.debt += n; c.debt < scrubStep {
		return true
	}
	all := max(float64(c.store.held()), 1)
	share := time.Duration(min(float64(c.debt)/all, 1./shards) * float64(c.pass))
	bound := time.Duration(c.debt) * time.Second / scrubRate
	c.debt = 0
	return c.sleep(max(share, bound))
}

// directory reads the files of one directory, and a share of the segments. It reports
// whether there is more to do.
func (c *scrubber) directory(shard int) bool {
	for _, sg := range c.store.segments.share(shard) {
		more := c.segment(sg)
		sg.release()
		if !more {
			return false
		}
	}
	dir := c.store.shardDir(shard)
	names, err := c.store.opt.FS.ReadDir(dir)
	if err != nil {
		return true // it was never made, or there will be complaints from those who use it
	}
	for _, name := range names {
		id, err := strconv.ParseUint(name, 16, 64)
		if err == nil && !c.file(id, filepath.Join(dir, name)) {
			return false
		}
	}
	return true
}

// share returns the segments that the scrub reads with a directory, each with a reference.
func (g *segments) share(shard int) (some []*segment) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for n, sg := range g.all {
		if int(n%shards) == shard && sg.acquire() {
			some = append(some, sg)
		}
	}
	return some
}

// segment reads the records of a segment that are held. It reports whether there is more
// to do.
func (c *scrubber) segment(sg *segment) bool {
	const piece = scrubStep
	g := c.store.segments
	r := newEntryReader(sg.index, make([]byte, 64<<10))
	at, cold := int64(-1), false
	leave := func() {
		if cold {
			sg.data.Uncache(at, piece)
		}
	}
	defer func() { leave() }()
	for {
		e, _, _, err := r.next()
		if err != nil {
			return true // at the end; or there is an entry that the next start can't read, whose object is as it was
		}
		o, ok := c.store.Peek(string(e.key))
		if !ok || !g.holds(sg, o, e.at) {
			continue
		}
		if now := e.at / piece * piece; now != at {
			leave()
			at, cold = now, !sg.data.Cached(now, piece)
		}
		_, rec, err := g.read(o)
		switch {
		case err == nil:
			c.bytes.Add(uint64(len(rec.body)))
		case errors.Is(err, errBroken):
			c.store.spoiled(o, err)
		}
		if !c.paid(o.bytes()) {
			return false
		}
	}
}

// file reads a file. It reports whether there is more to do.
func (c *scrubber) file(id uint64, path string) (more bool) {
	s := c.store
	if s.files.has(id) {
		return true // it is among those used most: readers check it
	}
	f, err := s.opt.FS.Open(path)
	if err != nil {
		return true // it left, or can't be opened now; if it never can, its next reader finds out
	}
	defer f.Close()
	defer s.files.distrust(id) // the pages that are read here nobody else has seen
	if !f.Cached(0, 0) {
		defer f.Uncache(0, 0)
	}
	ft, err := readFooter(f, c.buf)
	var o *Object
	if err != nil {
		if o = s.byFile(id); o == nil {
			return true
		}
		o.file.tail.RLock() // it may have been written just then
		ft, err = readFooter(f, c.buf)
		o.file.tail.RUnlock()
	} else if o, _ = s.Peek(ft.key); o == nil || o.is(objSmall) || o.file.id != id {
		return true // it is about to be removed, or was just written
	}
	if err != nil {
		if errors.Is(err, errBroken) {
			s.spoiled(o, err)
		}
		return true
	}
	_, _, sums, err := readTail(f, ft.body)
	if err != nil {
		return true // it was written just then: the next pass reads it
	}
	b := blocks{store: s, f: f, body: ft.body, sums: sums}
	defer b.park()
	for off := int64(0); off < ft.body; off += blockSize {
		got, err := b.at(off)
		if err != nil {
			s.spoiled(o, err)
			return true
		}
		c.bytes.Add(uint64(len(got)))
		if !c.paid(int64(len(got))) {
			return false
		}
	}
	return c.paid(ft.tailSize() + footerSize)
}

// byFile finds the object that a file holds by reading the whole index, which is
// for a file that doesn't say its key.
func (s *Store) byFile(id uint64) *Object {
	for o := range s.index.Values() {
		if !o.is(objSmall) && o.file.id == id {
			return o
		}
	}
	return nil
}
