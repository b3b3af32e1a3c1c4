package diskstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// segments are the log (record.go), with counts of its bytes. New objects are appended to the last segment, the head.
// To the others only removals are appended, until turnover removes them.
//
// The locks of a store, each of which may be taken while those before it are held:
//
//	store.tidying    while files are removed from the disk, so that all that were queued are gone once tidy returns
//	store.appending  by the one writer of the log, from the first byte of an object until the index has it
//	room.Mutex       what limits the store to less than its bound; then those of the index, which call dropped
//	store.mu         lists in memory, and where in the log an object is
//	trust.mu         which blocks of an open file were checked
type segments struct {
	store *store

	// guarded by store.appending
	head *segment    // nil = the next object begins one
	last uint32      // number of the newest segment
	lost atomic.Bool // the files that there were, with the directory: the next object begins a segment. Not guarded

	// guarded by store.mu
	all         map[uint32]*segment
	total, live int64            // bytes of all files; of the objects held
	removed     []removal        // objects that left the index, in this order, whose removals are not in the log yet
	unlink      []string         // files to be removed from the disk
	files       map[uint64]*file // by their numbers, while the store opens

	wake chan struct{} // wakes run; capacity 1
	stop chan struct{}
	done sync.WaitGroup
}

// A segment is one pair of files, which stay open while it is in use.
type segment struct {
	refs        // by segments and by readers
	id          uint32
	data, index File
	end         int64 // of the data; guarded by store.appending
	entries     int64 // end of the index; likewise
	emptied     bool  // it is about to be removed; likewise

	size, live int64 // bytes of its files, with each object rounded up; of the objects it holds; guarded by store.mu
}

// A removal is an object that left the index.
type removal struct {
	seg  uint32 // that has its entry; 0 = none
	seq  uint64 // its number
	file *file  // of its body, to which it had a reference; nil = none
}

const (
	minSegment = 64 << 10
	maxSegment = 16 << 30 // the segments of a store of 1 TiB; offsets of 32 bits, in units of 8 bytes, allow twice as much
	manyLeft   = 64       // removals that are written together
)

// segmentSize is the length of a full segment's data in a store that may use bound bytes: there are at most about 70
// segments.
func segmentSize(bound int64) int64 { return min(max(bound/64, minSegment), maxSegment) }

func (g *segments) dir() string { return filepath.Join(g.store.opt.Dir, "objects", "segments") }

func (g *segments) path(n uint32, kind string) string {
	return filepath.Join(g.dir(), fmt.Sprintf("%016x.%s", n, kind))
}

// release gives up a reference; the last closes the files.
func (sg *segment) release() {
	if sg.drop() {
		sg.close()
	}
}

func (sg *segment) close() {
	sg.data.Close()
	sg.index.Close()
}

// create makes the files of a new segment. store.appending is held.
func (g *segments) create() (*segment, error) {
	g.last++ // even after an error: a file of this name may stay behind
	data, err := g.createFile("data", dataMagic)
	if err != nil {
		return nil, err
	}
	index, err := g.createFile("index", indexMagic)
	if err != nil {
		data.Close()
		g.store.trash(g.path(g.last, "data"))
		return nil, err
	}
	sg := &segment{id: g.last, data: data, index: index, end: segmentHead, entries: segmentHead, size: 2 * segmentHead}
	g.admit(sg)
	return sg, nil
}

func (g *segments) createFile(kind, magic string) (File, error) {
	path := g.path(g.last, kind)
	f, err := g.store.createFile(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt([]byte(magic), 0); err != nil {
		f.Close()
		g.store.trash(path)
		return nil, err
	}
	return f, nil
}

// admit adds a segment to the set.
func (g *segments) admit(sg *segment) {
	sg.n.Store(1)
	g.store.mu.Lock()
	g.all[sg.id] = sg
	g.total += sg.size
	total := g.total
	g.store.mu.Unlock()
	g.store.allow(total)
}

// headFor returns the segment to which the next need bytes are appended. Unless it is for an object that is moved, it
// makes room first. store.appending is held.
func (g *segments) headFor(need int64, moving bool) (_ *segment, err error) {
	if g.store.closed {
		return nil, bodies.ErrClosed
	}
	if !moving {
		g.shed(need)
	}
	if g.head != nil && (g.lost.Swap(false) || g.head.end+need > segmentSize(g.store.bound.Load())) {
		g.head = nil
	}
	if g.head == nil {
		g.head, err = g.create()
	}
	return g.head, err
}

// grown counts a record and an entry that were appended to a segment. store.appending is held.
func (g *segments) grown(sg *segment, record, entry int64) {
	sg.end += record
	sg.entries += entry
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	sg.size += rounded(record + entry)
	g.total += rounded(record + entry)
}

// commit stores an object of size bytes. content is the body or, if that is in f, the checksums of its blocks; sum is
// that of content. may decides as in insert, right before the entry is written, together with m.Wanted: if one
// refuses, the error is [bodies.ErrUnwanted]. If the object is too large for a segment, the error is
// [bodies.ErrTooLarge]. commit takes over one reference to f.
func (s *store) commit(key string, f *file, content []byte, sum uint64, size int64, m bodies.Meta, may func(cur *object) bool) (*object, error) {
	refuse := func(err error) (*object, error) {
		if f != nil {
			s.giveUp(removal{file: f})
		}
		return nil, err
	}
	labels, st := s.labelsOf(m.Data), stampOf(m, s.opt.Hooks.Now().UnixNano())
	record := recordSize(int64(len(m.Data)), int64(len(content)))
	whole := record + entrySize(len(labels), len(key), f != nil)
	if len(m.Data) > maxData || len(labels) > maxLabels || whole > segmentSize(s.bound.Load())/4 {
		return refuse(bodies.ErrTooLarge)
	}
	e := entry{stamp: st, data: uint32(len(m.Data)), body: size}
	if f != nil {
		e.file = f.id
	}
	if err := s.writes.begin(); err != nil {
		return refuse(err)
	}
	defer s.writes.end()
	buf := s.records.get(whole)
	defer s.records.put(buf)
	b := appendEntry(appendRecord((*buf)[:0], m.Data, content, sum), &e, key, labels)
	if !s.takeLabels(len(labels)) {
		return refuse(bodies.ErrNoMemory)
	}
	s.appending.Lock()
	defer s.appending.Unlock()
	o := newObject(key, f, s.lastID.Add(1), whole, size, st) // numbers are in the order of the log
	sealRecord(b, o.seq, key)
	g := s.segments
	sg, err := g.headFor(rounded(whole), false)
	if err == nil {
		_, err = sg.data.WriteAt(b[:record], sg.end)
	}
	if err != nil {
		s.labels.memory.Give(perLabel * int64(len(labels)))
		return refuse(err)
	}
	o.seg, o.at = sg.id, uint32(sg.end/8)
	sealEntry(b[record:], o.at, o.seq)
	o.due = s.exp.due(st.listUntil, st.written, time.Since(s.exp.epoch))
	s.enter(o, labels)
	err = bodies.ErrUnwanted
	if !s.insert(o, func(cur *object) bool {
		if may != nil && !may(cur) || m.Wanted != nil && !m.Wanted() {
			return false
		}
		if _, err = sg.index.WriteAt(b[record:], sg.entries); err != nil {
			return false
		}
		o.set(objWritten)
		g.grown(sg, record, whole-record)
		return true
	}) {
		return nil, err
	}
	return o, nil
}

// holdLocked adds bytes to those of the objects that the segment of o holds. store.mu is held.
func (g *segments) holdLocked(o *object, bytes int64) {
	if sg := g.all[o.seg]; sg != nil {
		sg.live += bytes
		g.live += bytes
	}
}

// discardLocked queues the removal of an object that left the index. store.mu is held.
func (g *segments) discardLocked(o *object) {
	o.set(objDiscarded)
	g.holdLocked(o, -o.logged())
	r := removal{file: o.file}
	if o.is(objWritten) {
		r.seg, r.seq = o.seg, o.seq
	}
	if g.removed = append(g.removed, r); o.file != nil || len(g.removed) >= manyLeft || g.garbageLocked() {
		g.turn()
	}
}

// giveUp queues the removal of an object that is not in the index.
func (s *store) giveUp(r removal) {
	s.mu.Lock()
	s.segments.removed = append(s.segments.removed, r)
	s.mu.Unlock()
}

// flush writes the removals of all objects that have left the index so far, and removes the files of their bodies.
func (s *store) flush() {
	s.appending.Lock()
	s.segments.settle()
	s.appending.Unlock()
	s.tidy()
}

// settle writes the removals of all objects that have left the index so far. They are written in the order of the
// segments, which is also that of the objects of one key: none is ever in an earlier segment than the one that it
// replaced. What can't be written is tried again by the next flush. store.appending is held.
func (g *segments) settle() bool {
	g.store.mu.Lock()
	todo := g.removed
	g.removed = nil
	g.store.mu.Unlock()
	slices.SortStableFunc(todo, func(a, b removal) int { return cmp.Compare(a.seg, b.seg) })
	var b []byte
	var gone []string
	for len(todo) > 0 {
		n := 1
		for n < len(todo) && todo[n].seg == todo[0].seg {
			n++
		}
		if err := g.writeRemovals(todo[:n], b[:0]); err != nil {
			g.store.log.Error("cannot remove objects from the disk, will try again", "objects", len(todo), "error", err)
			break
		}
		for _, r := range todo[:n] {
			if f := r.file; f != nil && f.drop() {
				g.store.files.drop(f)
				gone = append(gone, g.store.path(f.id))
			}
		}
		todo = todo[n:]
	}
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	g.removed = append(todo, g.removed...)
	g.unlink = append(g.unlink, gone...)
	return len(todo) == 0
}

// writeRemovals appends removals to the index of their segment, or writes them over the entries if the disk takes no
// more bytes. store.appending is held.
func (g *segments) writeRemovals(all []removal, b []byte) error {
	g.store.mu.RLock()
	sg := g.all[all[0].seg]
	g.store.mu.RUnlock()
	if sg == nil {
		return nil // it is gone with its entries
	}
	for _, r := range all {
		b = appendRemoval(b, r.seq)
	}
	if _, err := sg.index.WriteAt(b, sg.entries); err == nil {
		sg.entries += int64(len(b))
		g.store.mu.Lock()
		sg.size += int64(len(b))
		g.total += int64(len(b))
		g.store.mu.Unlock()
		return nil
	}
	for r := newEntryReader(sg.index, make([]byte, 64<<10), sg.entries); ; {
		e, _, at, err := r.next()
		if err == nil && e.state == stateHeld && slices.ContainsFunc(all, func(r removal) bool { return r.seq == e.seq }) {
			_, err = sg.index.WriteAt([]byte{stateRemoved}, at)
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// trash queues files to be removed from the disk by tidy.
func (s *store) trash(paths ...string) {
	s.mu.Lock()
	s.segments.unlink = append(s.segments.unlink, paths...)
	s.mu.Unlock()
}

// tidy removes files from the disk. What can't be removed is tried again by the next tidy, or is found by the next
// start.
func (s *store) tidy() {
	s.tidying.Lock()
	defer s.tidying.Unlock()
	s.mu.Lock()
	todo := s.segments.unlink
	s.segments.unlink = nil
	s.mu.Unlock()
	var failed []string
	var cause error
	for _, path := range todo {
		if err := s.opt.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed, cause = append(failed, path), err
		}
	}
	if cause != nil {
		s.log.Error("cannot remove files from the disk, will try again", "files", len(failed), "error", cause)
		s.trash(failed...)
	}
}

// read reads and checks the record of an object into raw, which has o.logged() bytes: this includes the entry's size,
// and so may reach beyond the record. r points into raw. The error is ErrGone if the segment was removed.
func (g *segments) read(o *object, raw []byte) (r record, err error) {
	g.store.mu.RLock()
	sg, at := g.all[o.seg], int64(o.at)*8
	there := sg != nil && sg.acquire()
	g.store.mu.RUnlock()
	if !there {
		return r, bodies.ErrGone
	}
	defer sg.release()
	if err := g.store.reads.begin(); err != nil {
		return r, err
	}
	n, err := sg.data.ReadAt(raw, at)
	g.store.reads.end()
	if err != nil && !errors.Is(err, io.EOF) {
		if ourFault(err) {
			return r, err
		}
		return r, fmt.Errorf("%w: %w", errBroken, err)
	}
	r, err = parseRecord(raw[:n], o.seq, o.key)
	want := o.Size()
	if o.file != nil {
		want = 8 * bodies.BlockCount(want)
	}
	if err == nil && int64(len(r.content)) != want {
		err = fmt.Errorf("%w: a body has another length", errBroken)
	}
	return r, err
}

// remove removes a segment and the objects still in it, and reports whether it could. Objects that it replaced, and
// that left other segments, have to be removed there first. store.appending is held.
func (g *segments) remove(sg *segment) bool {
	if sg.emptied = g.settle(); !sg.emptied {
		return false
	}
	if err := g.store.opt.FS.Remove(g.path(sg.id, "index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.store.log.Error("cannot remove a segment from the disk, will try again", "error", err)
		sg.emptied = false
		return false
	}
	g.store.mu.Lock()
	delete(g.all, sg.id)
	g.total -= sg.size
	g.live -= sg.live
	total := g.total
	g.unlink = append(g.unlink, g.path(sg.id, "data")) // a start ignores the data without an index
	g.store.mu.Unlock()
	sg.release()
	g.store.allow(total)
	g.turn()
	return true
}
