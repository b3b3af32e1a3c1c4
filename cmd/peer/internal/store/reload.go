package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/maypok86/otter/v2"
)

// found is an object's file as a scan sees it.
type found struct {
	footer
	id     uint64
	key    string
	labels []uint64
	meta   []byte // the owner's data, in the buffer of the scan
}

// reload fills the index from the files. The oldest go in first, so that the
// youngest are those that a store which has shrunk keeps. Of several for one key the
// one that was committed last counts, which is told by numbers that no clock puts back.
func (s *Store) reload() error {
	all, err := s.scan()
	if err == nil {
		slices.SortFunc(all, func(a, b found) int {
			return cmp.Compare(a.id, b.id)
		})
		for _, f := range all {
			file := &file{id: f.id, body: f.body}
			file.refs.Store(1)
			m := Meta{ListUntil: f.listUntil, Generated: f.generated, Copied: f.copied}
			s.restore(newObject(f.key, file, f.id, f.fileSize(), m, f.written), f.written, f.labels)
		}
		err = s.segments.reload()
	}
	for version := range s.otherVersions {
		if n := s.otherVersions[version].Load(); n > 0 {
			s.log.Warn("removed files of a version that this program doesn't read",
				"files", n, "version", string(rune(version)))
		}
	}
	return err
}

// restore puts an object that was found into the index, unless a later one of its key
// is there.
func (s *Store) restore(o *Object, written int64, labels []uint64) {
	raise(&s.lastID, o.seq)
	if written > s.opened { // by a clock that was put back since: how long it may be listed isn't known
		o.listUntil = 0
	} else {
		raise(&s.newest, written)
	}
	s.entering.RLock()
	defer s.entering.RUnlock()
	s.enter(o, labels)
	s.spare(o)
	later := true
	s.index.Compute(s.hash(o.key), func(cur *Object, found bool) (*Object, otter.ComputeOp) {
		if found {
			s.removed.Add(1)
			if later = cur.seq < o.seq; !later {
				return nil, otter.CancelOp
			}
		} else {
			s.reloaded.Add(1)
		}
		return o, otter.WriteOp
	})
	if !later {
		s.leave(o)
	}
}

// raise makes n at least v.
func raise[T int64 | uint64, N interface {
	Load() T
	CompareAndSwap(was, is T) bool
}](n N, v T) {
	for { // each round sees a greater n, or is the last
		was := n.Load()
		if was >= v || n.CompareAndSwap(was, v) {
			return
		}
	}
}

// scan reads the footers of all files, several shards at a time, and removes
// the files that have none. Files whose names aren't ours are left alone.
func (s *Store) scan() ([]found, error) {
	const scanners = 8
	var (
		mu     sync.Mutex
		all    []found
		errs   []error
		wg     sync.WaitGroup
		shardc = make(chan int)
	)
	for range scanners {
		wg.Go(func() {
			buf := make([]byte, 4<<10)
			for shard := range shardc {
				some, err := s.scanShard(shard, buf)
				mu.Lock()
				all = append(all, some...)
				if err != nil {
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		})
	}
	dirs, err := s.opt.FS.ReadDir(filepath.Join(s.opt.Dir, "objects"))
	for _, name := range dirs {
		if shard, err := strconv.ParseUint(name, 16, 8); err == nil && len(name) == 2 {
			shardc <- int(shard)
		}
	}
	close(shardc)
	wg.Wait()
	return all, errors.Join(append(errs, err)...)
}

func (s *Store) scanShard(shard int, buf []byte) ([]found, error) {
	dir := s.shardDir(shard)
	names, err := s.opt.FS.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	some := make([]found, 0, len(names))
	for _, name := range names {
		id, err := strconv.ParseUint(name, 16, 64)
		if err != nil || len(name) != 16 || int(id%shards) != shard {
			continue
		}
		path := filepath.Join(dir, name)
		f, err := s.footerOf(path, buf)
		switch {
		case err == nil:
			f.id = id
			some = append(some, f)
		case errors.Is(err, errBroken):
			if err := s.removeBroken(path, err); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
	return some, nil
}

// removeBroken removes a file that can't be read for what is in it.
func (s *Store) removeBroken(path string, cause error) error {
	s.removed.Add(1)
	var v *versionError
	if errors.As(cause, &v) {
		s.otherVersions[v.version].Add(1)
	} else {
		s.limited.Warn("disk", "removed a broken file", "file", path, "error", cause)
	}
	return s.opt.FS.Remove(path)
}

func (s *Store) footerOf(path string, buf []byte) (found, error) {
	h, err := s.opt.FS.Open(path)
	if err != nil {
		return found{}, err
	}
	defer h.Close()
	f, err := readFooter(h, buf)
	f.labels, f.meta = s.labelsOf(f.meta), nil
	return f, err
}

// readFooter reads the end of a file and verifies the description that stands
// there. The body is verified when it is read.
func readFooter(h File, buf []byte) (found, error) {
	size, err := h.Size()
	if err != nil {
		return found{}, err
	}
	end := buf[:min(int64(len(buf)), size)]
	if err := readAt(h, end, size-int64(len(end))); err != nil {
		return found{}, err
	}
	if len(end) < footerSize {
		return found{}, fmt.Errorf("%w: too short", errBroken)
	}
	ft, err := parseFooter(end[len(end)-footerSize:], size)
	if err != nil {
		return found{}, err
	}
	tail := end[:len(end)-footerSize]
	if n := ft.tailSize(); n <= int64(len(tail)) {
		tail = tail[int64(len(tail))-n:]
	} else {
		tail = make([]byte, n)
		if err := readAt(h, tail, ft.body); err != nil {
			return found{}, err
		}
	}
	if xxhash.Sum64(tail) != ft.tailSum {
		return found{}, fmt.Errorf("%w: checksum", errBroken)
	}
	at := 8 * blockCount(ft.body)
	end = tail[at:]
	return found{footer: ft, key: string(end[:ft.key]), meta: end[ft.key:]}, nil
}

// readAt fills b; a file that is too short for that is broken.
func readAt(h File, b []byte, off int64) error {
	_, err := h.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return err
}
