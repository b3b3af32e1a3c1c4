package diskstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load reads the log, several segments at a time, but no bodies.
func (g *segments) load() (all []found, err error) {
	names, err := g.store.opt.FS.ReadDir(g.dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	kinds := map[string][]uint32{} // the numbers of files
	for _, name := range names {
		digits, kind, _ := strings.Cut(name, ".")
		parsed, err := strconv.ParseUint(digits, 16, 32)
		if n := uint32(parsed); err == nil && filepath.Base(g.path(n, kind)) == name {
			kinds[kind] = append(kinds[kind], n)
		}
	}
	indexes, data := kinds["index"], kinds["data"]
	err = g.store.shardFiles(filepath.Join(g.store.opt.Dir, "objects"), func(_ uint64, path string) error {
		return fmt.Errorf("%s: %w", path, errOther) // a body as they were before version 2
	})
	if err != nil {
		return nil, err
	}
	for _, n := range data {
		if !slices.Contains(indexes, n) { // after a crash before its first object, or during its removal
			if err := g.store.opt.FS.Remove(g.path(n, "data")); err != nil {
				return nil, err
			}
		}
	}
	g.last = slices.Max(slices.Concat(indexes, data, []uint32{0}))
	all = make([]found, len(indexes))
	err = each(len(all), func(k int, buf []byte) (err error) {
		all[k], err = g.loadSegment(indexes[k], buf)
		return err
	})
	for _, f := range all {
		if err != nil && f.segment != nil {
			f.segment.close()
		}
	}
	return all, err
}

// reload fills the index with what load found, several parts at a time. Of several objects with one key, it keeps
// the one that was stored last, by its number: a clock may have been set back. Of an object that was being moved, it
// keeps the later place, so that no segment gets an object again after its removal. Then it removes the files of
// bodies that no object has, since a killed process was writing or removing them.
func (g *segments) reload(all []found) error {
	g.files = map[uint64]*file{}
	var parts []found // a store may have one segment, or have most of its objects in one
	for _, f := range all {
		if f.segment != nil {
			g.admit(f.segment)
		}
		for part := range slices.Chunk(f.objects, restored) {
			parts = append(parts, found{f.segment, part, f.labels})
		}
	}
	each(len(parts), func(k int, _ []byte) error {
		g.restore(parts[k])
		return nil
	})
	held := g.files
	g.head, g.files = g.all[g.last], nil
	return g.store.sweepBodies(held)
}

// each calls do for 0 to n-1, several at a time, with a buffer, until one fails.
func each(n int, do func(k int, buf []byte) error) error {
	errs := make([]error, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			buf := make([]byte, 256<<10)
			for k := int(next.Add(1)) - 1; k < n && errs[i] == nil; k = int(next.Add(1)) - 1 {
				errs[i] = do(k, buf)
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// found is what the log has of a segment; no segment = it was broken.
type found struct {
	*segment
	objects []*object
	labels  map[*object][]uint64
}

// loadSegment reads the index of a segment, and cuts off an incomplete entry at its end. A segment whose index is
// broken is removed.
func (g *segments) loadSegment(n uint32, buf []byte) (f found, err error) {
	s := g.store
	sg, dataSize, err := g.open(n)
	if err == nil {
		f.labels = map[*object][]uint64{}
		f.objects, err = g.entries(sg, dataSize, buf, f.labels)
	}
	if err == nil {
		f.segment = sg
		return f, nil
	}
	if sg != nil {
		sg.close()
	}
	if errors.Is(err, errBroken) {
		s.removed.Add(1)
		s.log.Warn("removed a broken file", "error", err, "file", g.path(n, "index"))
		err = s.opt.FS.Remove(g.path(n, "index"))
		s.trash(g.path(n, "data"))
	}
	return found{}, err
}

const (
	restored   = 256 // objects that are restored at a time
	maintained = 64  // objects after which the index does what it would do after each; it buffers 128 for each thread
)

// restore adds objects of a segment.
func (g *segments) restore(f found) {
	s := g.store
	all := slices.DeleteFunc(f.objects, func(o *object) bool {
		if n := len(f.labels[o]); n > 0 && !s.takeLabels(n) {
			s.giveUp(removal{o.seg, o.seq, o.file})
			return true
		}
		return false
	})
	s.announce(all...)
	s.mu.Lock()
	for _, o := range all {
		if o.file != nil { // objects may share it, if a killed process was describing the body anew
			if shared := g.files[o.file.id]; shared != nil && shared.acquire() {
				o.file = shared
			}
			g.files[o.file.id] = o.file
		}
		s.listLocked(o, f.labels[o])
	}
	s.mu.Unlock()
	fresh := 0
	for i, o := range all {
		s.insert(o, func(cur *object) bool {
			if cur == nil {
				fresh++
				return true
			}
			return cur.seq < o.seq || cur.seq == o.seq && cur.seg < o.seg
		})
		if i%maintained == maintained-1 || i == len(all)-1 {
			s.index.CleanUp()
		}
	}
	s.reloaded.Add(uint64(fresh))
	s.removed.Add(uint64(len(all) - fresh))
}

// entries reads the index of a segment, and returns the objects that it holds. It adds their labels to a map.
func (g *segments) entries(sg *segment, dataSize int64, buf []byte, labels map[*object][]uint64) (all []*object, err error) {
	s := g.store
	gone := map[uint64]bool{} // by their numbers
	now, since := s.opt.Hooks.Now().UnixNano(), time.Since(s.exp.epoch)
	var last uint64
	var newest int64
	all = make([]*object, 0, sg.entries/(entryHead+48)) // nearly so many: a key has some 48 bytes
	defer func() {
		s.mu.Lock()
		s.lastID.Store(max(s.lastID.Load(), last))
		s.newest.Store(max(s.newest.Load(), newest))
		s.mu.Unlock()
	}()
	size := int64(2 * segmentHead)
	for r := newEntryReader(sg.index, buf, sg.entries); ; {
		e, _, at, err := r.next()
		switch {
		case err == io.EOF:
			err = nil
			if sg.size = max(sg.size, size); at < sg.entries {
				s.removed.Add(1)
				s.log.Warn("cut off the end of a segment's index", "file", g.path(sg.id, "index"), "offset", at)
				sg.entries, err = at, sg.index.Truncate(at)
			}
			if len(gone) > 0 {
				all = slices.DeleteFunc(all, func(o *object) bool { return gone[o.seq] })
			}
			return all, err
		case err != nil:
			return nil, err
		case e.state == stateRemoval:
			size += e.size
			gone[e.seq] = true
			continue
		}
		record := recordSize(int64(e.data), e.content())
		size += rounded(record + e.size)
		sg.end = max(sg.end, int64(e.at)*8+record)
		last = max(last, e.seq, e.file)
		if e.state == stateRemoved {
			continue
		}
		if e.at < segmentHead/8 || int64(e.at)*8+record > dataSize { // lost by a power cut
			s.removed.Add(1)
			s.giveUp(removal{seg: sg.id, seq: e.seq})
			continue
		}
		if e.written > s.opened { // the clock was set back since: how long to list it is unknown
			e.listUntil = 0
		} else {
			newest = max(newest, e.written)
		}
		var f *file
		if e.file != 0 {
			f = newFile(e.file, e.body)
		}
		o := newObject(string(e.key), f, e.seq, record+e.size, e.body, e.stamp)
		o.seg, o.at, o.due = sg.id, e.at, s.exp.due(e.listUntil, now, since)
		o.set(objWritten)
		if all = append(all, o); len(e.labels) > 0 {
			labels[o] = decodeUint64s(e.labels)
		}
	}
}

// open opens the files of a segment. If they are useless, the error wraps errBroken. They are of another format only
// if both say so, since these bytes have no checksum.
func (g *segments) open(n uint32) (sg *segment, dataSize int64, err error) {
	index, indexSize, err := g.openFile(n, "index", indexFamily, indexMagic)
	other := errors.Is(err, errOther)
	if err != nil && !other {
		return nil, 0, err
	}
	data, dataSize, errData := g.openFile(n, "data", dataFamily, dataMagic)
	if err == nil && errData == nil {
		return &segment{id: n, data: data, index: index, end: segmentHead, entries: indexSize, size: dataSize + indexSize}, dataSize, nil
	}
	for _, f := range []File{index, data} {
		if f != nil {
			f.Close()
		}
	}
	if err = cmp.Or(err, errData); other != errors.Is(errData, errOther) || errors.Is(errData, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil, 0, err
}

func (g *segments) openFile(n uint32, kind, family, magic string) (f File, size int64, err error) {
	if f, err = g.store.opt.FS.Edit(g.path(n, kind)); err != nil {
		return nil, 0, err
	}
	if err = checkMagic(f, family, magic); err == nil {
		size, err = f.Size()
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%s: %w", g.path(n, kind), err)
	}
	return f, size, nil
}

// shardFiles calls do for the files in the directories of a base directory whose names are those of bodies.
func (s *store) shardFiles(base string, do func(id uint64, path string) error) error {
	dirs, err := s.opt.FS.ReadDir(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, shard := range dirs {
		n, err := strconv.ParseUint(shard, 16, 8)
		if err != nil || fmt.Sprintf("%02x", n) != shard {
			continue
		}
		names, err := s.opt.FS.ReadDir(filepath.Join(base, shard))
		if err != nil {
			return err
		}
		for _, name := range names {
			id, err := strconv.ParseUint(name, 16, 64)
			if err != nil || id%shards != n || fmt.Sprintf("%016x", id) != name {
				continue
			}
			if err := do(id, filepath.Join(base, shard, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepBodies removes the files of bodies that no object has, and the objects whose files are missing.
func (s *store) sweepBodies(held map[uint64]*file) error {
	err := s.shardFiles(filepath.Join(s.opt.Dir, "objects", "bodies"), func(id uint64, path string) error {
		s.lastID.Store(max(s.lastID.Load(), id))
		if held[id] != nil {
			delete(held, id)
			return nil
		}
		s.removed.Add(1)
		return s.opt.FS.Remove(path)
	})
	if err != nil || len(held) == 0 {
		return err
	}
	for o := range s.index.Values() {
		if o.file != nil && held[o.file.id] != nil && s.removeObject(o) {
			s.removed.Add(1)
			s.reloaded.Add(^uint64(0))
		}
	}
	return nil
}
