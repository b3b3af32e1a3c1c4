package store

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// An Object is one object of a store, as it was when it was found. It is
// immutable; a new description of the same body ([Store.Update]) is a new Object.
type Object struct {
	key       string
	file      *file
	seq       uint64 // distinguishes descriptions of one file
	kib       uint32 // room on disk
	listed    atomic.Bool
	gone      atomic.Bool   // it left the index
	copied    bool          // another cache has a copy
	labelled  bool          // it is in Store.labels
	found     atomic.Bool   // since it came, or was passed over, if it is copied
	turn      *list.Element // in the order of the copies; guarded by their lock
	written   int64         // Unix nanoseconds
	listUntil time.Time
	generated time.Time
	due       time.Duration // when it stops being listed, for the queue of expiries; guarded by its lock
	place     int           // in that queue, -1 = not there
}

// Key returns the key under which the object is stored.
func (o *Object) Key() string { return o.key }

// Size returns the length of the body in bytes.
func (o *Object) Size() int64 { return o.file.body }

// Listed reports whether the object is listed now.
func (o *Object) Listed() bool { return o.listed.Load() }

// ListUntil returns when the object stops being listed.
func (o *Object) ListUntil() time.Time { return o.listUntil }

// Generated returns when what the object holds came into being; zero = not said.
func (o *Object) Generated() time.Time { return o.generated }

// Copied reports whether another cache has a copy ([Meta.Copied]).
func (o *Object) Copied() bool { return o.copied }

// Written returns when the object was stored, or its description renewed.
func (o *Object) Written() time.Time { return time.Unix(0, o.written) }

// A file is a body on disk, shared by the successive Objects that describe it.
// It is unlinked when the last of them has left the index.
type file struct {
	id   uint64
	body int64
	refs atomic.Int32 // Objects in the index, or about to be
	tail sync.RWMutex // guards the part of the file after the body
}

// acquire takes a reference unless the file is being unlinked.
func (f *file) acquire() bool {
	for {
		n := f.refs.Load()
		if n == 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *Store) unref(f *file) {
	if f.refs.Add(-1) == 0 {
		s.files.drop(f)
		s.trash.remove(s.path(f.id))
	}
}

// kib rounds the bytes of a file up to what its file system gives it.
func kib(size int64) uint32 { return uint32((size + unit - 1) / unit * (unit / 1024)) }

// newObject makes an Object over f that holds one reference to it.
func (s *Store) newObject(key string, f *file, size int64, m Meta, written int64) *Object {
	return &Object{key: key, file: f, seq: s.lastSeq.Add(1), kib: kib(size), written: written, listUntil: m.ListUntil,
		generated: m.Generated, copied: m.Copied, place: -1}
}

// insert puts o into the index, in place of what is there under its key. The
// hooks hear of o before anyone can find it.
func (s *Store) insert(o *Object, labels []uint64) {
	s.entering.RLock()
	defer s.entering.RUnlock()
	s.enter(o, labels)
	s.spare(o)
	s.index.Set(o.key, o)
}

// swap puts o into the index if old is there still.
func (s *Store) swap(old, o *Object, labels []uint64) bool {
	s.entering.RLock()
	defer s.entering.RUnlock()
	s.enter(o, labels)
	done := false
	s.index.Compute(o.key, func(cur *Object, found bool) (*Object, otter.ComputeOp) {
		if done = found && cur == old; done {
			return o, otter.WriteOp
		}
		return nil, otter.CancelOp
	})
	if !done {
		s.left(o)
	}
	return done
}

// DeleteObject removes o if it is still the object under its key, and reports
// whether it was.
func (s *Store) DeleteObject(o *Object) bool {
	done := false
	s.index.ComputeIfPresent(o.key, func(cur *Object) (*Object, otter.ComputeOp) {
		if done = cur == o; done {
			return nil, otter.InvalidateOp
		}
		return nil, otter.CancelOp
	})
	return done
}

// dropFile removes the object that o describes, also under a newer description,
// and reports whether it was there still.
func (s *Store) dropFile(o *Object) bool {
	done := false
	s.index.ComputeIfPresent(o.key, func(cur *Object) (*Object, otter.ComputeOp) {
		if done = cur.file == o.file; done {
			return nil, otter.InvalidateOp
		}
		return nil, otter.CancelOp
	})
	return done
}

// dropped is told by the index, under its lock, that an object left it.
func (s *Store) dropped(e otter.DeletionEvent[string, *Object]) {
	if e.Cause == otter.CauseOverflow {
		s.evictions.Add(1)
	}
	s.left(e.Value)
}

// maxListed keeps sums of durations from overflowing.
const maxListed = 100 * 365 * 24 * time.Hour

// enter tells the hooks that o is about to be found, and queues its unlisting.
func (s *Store) enter(o *Object, labels []uint64) {
	s.opt.Hooks.Stored(o.key)
	s.labels.enter(o, labels)
	s.copies.enter(o)
	after := min(o.listUntil.Sub(s.opt.Now()), maxListed)
	if after <= 0 {
		return
	}
	s.opt.Hooks.Listed(o.key)
	s.listed.Add(1)
	o.listed.Store(true)
	s.exp.add(o, after)
}

// left undoes enter, once.
func (s *Store) left(o *Object) {
	s.copies.leave(o)
	s.labels.leave(o)
	s.exp.remove(o)
	s.unlist(o)
	s.opt.Hooks.Evicted(o.key)
	s.hot.drop(o)
	s.unref(o.file)
}

// unlist ends o's listing if it hasn't ended.
func (s *Store) unlist(o *Object) {
	if o.listed.CompareAndSwap(true, false) {
		s.listed.Add(-1)
		s.opt.Hooks.Unlisted(o.key)
	}
}

// Update gives o's body a new description and returns the Object that has it, which is a
// copy if o is.
// It returns [ErrGone] if o is no longer in the store.
func (s *Store) Update(o *Object, m Meta) (*Object, error) {
	if len(m.Data) > maxData {
		return nil, ErrTooLarge
	}
	s.committing.RLock()
	defer s.committing.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	if cur, ok := s.Peek(o.key); !ok || cur != o || !o.file.acquire() {
		return nil, ErrGone
	}
	now := s.opt.Now().UnixNano()
	m.Copied = o.copied
	size, err := s.rewriteTail(o, m, now)
	if err != nil {
		s.unref(o.file)
		if errors.Is(err, errBroken) {
			return nil, s.spoiled(o, err)
		}
		s.DeleteObject(o)
		s.failed(err)
		return nil, err
	}
	fresh := s.newObject(o.key, o.file, size, m, now)
	if !s.swap(o, fresh, s.labelsOf(m.Data)) {
		return nil, ErrGone
	}
	return fresh, nil
}

// rewriteTail overwrites what follows the body of o's file, in place. A crash
// in between costs the object, never its truth: the file has no valid footer.
func (s *Store) rewriteTail(o *Object, m Meta, now int64) (size int64, err error) {
	f := o.file
	f.tail.Lock()
	defer f.tail.Unlock()
	h, err := s.opt.FS.Edit(s.path(f.id))
	if err != nil {
		return 0, err
	}
	defer h.Close()
	key, _, sums, err := readTail(h, f.body)
	switch {
	case err != nil:
		return 0, err
	case key != o.key:
		return 0, fmt.Errorf("%w: it holds another key", errBroken)
	}
	tail := appendTail(nil, f.body, sums, o.key, m, now)
	if _, err := h.WriteAt(tail, f.body); err != nil {
		return 0, err
	}
	size = f.body + int64(len(tail))
	return size, h.Truncate(size)
}
