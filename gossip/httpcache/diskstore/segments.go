package diskstore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
)

// segments are the files that small objects share (segment_format.go), with counts of
// their bytes. New objects are appended to one of them, the head. The others only lose
// objects, until turnover removes them.
type segments struct {
	store *store

	appending sync.Mutex // held while an entry is written
	head      *segment   // nil = the next object begins one
	last      uint64     // number of the newest segment

	mu          sync.RWMutex // guards the locations of small objects, and:
	all         map[uint64]*segment
	total, live int64 // bytes of all files; of the objects held

	wake chan struct{} // wakes turnover; capacity 1
	stop chan struct{}
	done sync.WaitGroup
}

// A segment is one pair of these files, which stay open while it is in use.
type segment struct {
	file
	data, index File
	end         int64 // of the data; guarded by segments.appending
	entries     int64 // end of the index; likewise

	// guarded by segments.mu
	size, live int64 // bytes of its files, with each object rounded up; of the objects it holds
	pins       int   // objects appended to it that are not in the store's index yet: it can't be removed
	emptied    bool  // it is about to be removed
	gone       bool  // it was removed
}

const (
	minSegment = 64 << 10
	maxSegment = 16 << 30 // the segments of a store of 1 TiB; offsets of 32 bits, in units of 8 bytes, allow twice as much
)

// segmentSize is the length of a full segment's data in a store that may use bound bytes: there
// are at most about 70 segments.
func segmentSize(bound int64) int64 { return min(max(bound/64, minSegment), maxSegment) }

// maxRecord is the greatest length of a record with its entry; a larger object gets its own file.
func maxRecord(bound int64) int64 { return segmentSize(bound) / 4 }

func newSegments(s *store) *segments {
	return &segments{store: s, all: make(map[uint64]*segment), wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

func (g *segments) dir() string { return filepath.Join(g.store.opt.Dir, "objects", "segments") }

func (g *segments) path(n uint64, kind string) string {
	return filepath.Join(g.dir(), fmt.Sprintf("%016x.%s", n, kind))
}

// release gives up a reference; the last closes the files.
func (sg *segment) release() {
	if sg.drop() {
		sg.data.Close()
		sg.index.Close()
	}
}

// create makes the files of a new segment. g.appending is held.
func (g *segments) create() (*segment, error) {
	n := g.last + 1
	data, err := g.createFile(n, "data", dataMagic)
	if err != nil {
		return nil, err
	}
	index, err := g.createFile(n, "index", indexMagic)
	if err != nil {
		data.Close()
		g.store.trash.remove(g.path(n, "data"))
		return nil, err
	}
	sg := &segment{data: data, index: index, end: segmentHead, entries: segmentHead, size: 2 * segmentHead}
	g.add(n, sg)
	return sg, nil
}

func (g *segments) createFile(n uint64, kind, magic string) (File, error) {
	files, path := g.store.opt.FS, g.path(n, kind)
	g.last = n // even after an error: a file of this name may stay behind
	f, err := files.Create(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := files.MkdirAll(g.dir()); err != nil {
			return nil, err
		}
		f, err = files.Create(path)
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt([]byte(magic), 0); err != nil {
		f.Close()
		g.store.trash.remove(path)
		return nil, err
	}
	return f, nil
}

// add adds a segment to the set.
func (g *segments) add(n uint64, sg *segment) {
	sg.id, sg.seg = n, sg
	sg.n.Store(1)
	g.mu.Lock()
	g.all[n] = sg
	g.total += sg.size
	total := g.total
	g.mu.Unlock()
	g.store.allow(total)
}

// headFor returns the segment to which the next need bytes are appended. g.appending is held.
func (g *segments) headFor(need int64) (*segment, error) {
	if g.head != nil && g.head.end+need > segmentSize(g.store.bound.Load()) {
		g.head = nil
	}
	if g.head == nil {
		head, err := g.create()
		if err != nil {
			return nil, err
		}
		g.head = head
	}
	return g.head, nil
}

// append writes a record and then its entry, in which it fills in the record's offset. It makes
// room first, unless it is called to move an object. The segment is pinned: the caller calls unpin
// when the object can be found.
func (g *segments) append(record, entry []byte, state byte, moving bool) (sg *segment, at, entryAt int64, err error) {
	need := rounded(int64(len(record) + len(entry)))
	g.appending.Lock()
	if !moving {
		g.shed(need)
	}
	if sg, err = g.headFor(need); err != nil {
		g.appending.Unlock()
		return nil, 0, 0, err
	}
	at = sg.end
	sg.end += int64(len(record))
	g.mu.Lock()
	sg.pins++
	g.growLocked(sg, need)
	g.mu.Unlock()
	g.appending.Unlock()

	if _, err = sg.data.WriteAt(record, at); err == nil {
		moveEntry(entry, state, at)
		g.appending.Lock()
		entryAt = sg.entries
		if _, err = sg.index.WriteAt(entry, entryAt); err == nil {
			sg.entries += int64(len(entry))
		}
		g.appending.Unlock()
	}
	if err != nil {
		g.unpin(sg)
		return nil, 0, 0, err
	}
	return sg, at, entryAt, nil
}

// growLocked adds n bytes to the size of a segment. g.mu is held.
func (g *segments) growLocked(sg *segment, n int64) {
	sg.size += n
	g.total += n
}

// unpin undoes the pin of append; nil does nothing.
func (g *segments) unpin(sg *segment) {
	if sg == nil {
		return
	}
	g.mu.Lock()
	sg.pins--
	g.mu.Unlock()
}

// settleLocked sets the location of o. g.mu is held.
func (g *segments) settleLocked(o *object, sg *segment, at, entryAt int64) {
	o.file, o.at, o.entry = &sg.file, uint32(at/8), uint32(entryAt/8)
	sg.live += o.bytes()
	g.live += o.bytes()
}

// hold marks the entry of an object as held, so that a start finds it.
func (g *segments) hold(o *object) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	g.store.trash.mark(o.file.seg, int64(o.entry)*8, stateHeld)
}

// locate returns the segment of a small object, with a reference, and the offset of its record.
// It returns nil if the segment is gone.
func (g *segments) locate(o *object) (sg *segment, at int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if sg = o.file.seg; !sg.acquire() {
		return nil, 0
	}
	return sg, int64(o.at) * 8
}

// discard removes an object that left the index from its segment.
func (g *segments) discard(o *object) {
	g.mu.Lock()
	sg := o.file.seg
	o.set(objDiscarded)
	if !sg.gone {
		sg.live -= o.bytes()
		g.live -= o.bytes()
		g.store.trash.mark(sg, int64(o.entry)*8, stateRemoved)
	}
	garbage := g.garbageLocked()
	g.mu.Unlock()
	if garbage {
		g.turn()
	}
}

// remove removes a segment and the objects still in it.
func (g *segments) remove(sg *segment) {
	g.mu.Lock()
	sg.gone = true
	delete(g.all, sg.id)
	g.total -= sg.size
	g.live -= sg.live
	total := g.total
	g.store.trash.remove(g.path(sg.id, "index")) // first: without it a start ignores the data
	g.store.trash.remove(g.path(sg.id, "data"))
	g.mu.Unlock() // not before: a caller that finds it gone relies on the removal being queued
	sg.release()
	g.store.allow(total)
}

// closeFiles closes all segments. No append and no turnover may follow.
func (g *segments) closeFiles() {
	for _, sg := range g.all {
		sg.release()
	}
}
