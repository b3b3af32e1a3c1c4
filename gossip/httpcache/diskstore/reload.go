package diskstore

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// found is the file of an object, as scan reads it.
type found struct {
	tail   // without sums and data
	id     uint64
	labels []uint64
}

// reload fills the index from the files. The oldest are inserted first, so that a store that has
// less room now keeps the youngest. Of several objects with one key, it keeps the one committed
// last, by its number: a clock may have been set back.
func (s *store) reload() error {
	all, err := s.scan()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.id, b.id) })
	for _, f := range all {
		s.restore(newObject(f.key, newFile(f.id, f.body), f.id, f.fileSize(), f.stamp), f.written, f.labels)
	}
	return s.segments.reload()
}

// restore inserts an object found on disk into the index, unless a later object with its key
// is there.
func (s *store) restore(o *object, written int64, labels []uint64) {
	raise(&s.lastID, o.seq)
	if written > s.opened { // the clock was set back since: how long to list it is unknown
		o.listUntil = 0
	} else {
		raise(&s.newest, written)
	}
	s.insert(o, labels, func(cur *object) bool {
		if cur == nil {
			s.reloaded.Add(1)
			return true
		}
		s.removed.Add(1)
		return cur.seq < o.seq
	})
}

// raise makes n at least v.
func raise[T int64 | uint64, N interface {
	Load() T
	CompareAndSwap(was, is T) bool
}](n N, v T) {
	for { // each round but the last finds that n has grown
		was := n.Load()
		if was >= v || n.CompareAndSwap(was, v) {
			return
		}
	}
}

// scan reads the tails of all files, several shards at a time, and removes files without a valid
// one. It ignores files whose names are not those of objects.
func (s *store) scan() (all []found, err error) {
	names, err := s.opt.FS.ReadDir(filepath.Join(s.opt.Dir, "objects"))
	if err != nil {
		return nil, err
	}
	var dirs []int
	for _, name := range names {
		if shard, err := strconv.ParseUint(name, 16, 8); err == nil && len(name) == 2 {
			dirs = append(dirs, int(shard))
		}
	}
	const atATime = 8
	var mu sync.Mutex
	err = inParallel(atATime, dirs, func(shard int, buf []byte) error {
		some, err := s.scanShard(shard, buf[:4<<10])
		mu.Lock()
		all = append(all, some...)
		mu.Unlock()
		return err
	})
	return all, err
}

// inParallel calls do for each item, in several goroutines, each with its own buffer.
// It returns one of the errors.
func inParallel[T any](goroutines int, items []T, do func(item T, buf []byte) error) error {
	errs := make([]error, len(items))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(goroutines, len(items)) {
		all.Go(func() {
			buf := make([]byte, 256<<10)
			for i := next.Add(1) - 1; int(i) < len(items); i = next.Add(1) - 1 {
				errs[i] = do(items[i], buf)
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

func (s *store) scanShard(shard int, buf []byte) ([]found, error) {
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
		f, err := s.tailOf(path, buf)
		switch {
		case err == nil:
			f.id = id
			some = append(some, f)
		case errors.Is(err, errBroken):
			if err := s.removeBroken(path, err); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return some, nil
}

// removeBroken removes a file whose content can't be read.
func (s *store) removeBroken(path string, cause error) error {
	s.removed.Add(1)
	s.log.Warn("removed a broken file", "error", cause, "file", path)
	return s.opt.FS.Remove(path)
}

func (s *store) tailOf(path string, buf []byte) (found, error) {
	h, err := s.opt.FS.Open(path)
	if err != nil {
		return found{}, err
	}
	defer h.Close()
	t, err := readTail(h, -1, buf) // the body is checked when it is read
	f := found{tail: t, labels: s.labelsOf(t.data)}
	f.sums, f.data = nil, nil
	return f, err
}
