package diskstore

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

const reserveStep = 1 << 20 // room that is reserved at a time

// A writer receives the body of an object. It is the [bodies.Sink] of its stream.
type writer struct {
	bodies.Stream
	store *store
	key   string
	size  int64 // announced; -1 = unknown

	room  int64       // reserved for this body
	f     File        // nil = none yet
	saved int64       // bytes of the body that are in the file
	id    uint64      // of the temporary file, while it has that name; otherwise 0
	bad   atomic.Bool // a follower found the file corrupt
}

// Create starts an object; size is the length of the body in bytes, -1 if it
// isn't known. It returns [bodies.ErrTooLarge] for more than the store takes.
func (s *store) Create(key string, size int64) (*bodies.Stream, error) {
	w, err := s.create(key, size)
	if err != nil {
		return nil, err
	}
	return &w.Stream, nil
}

func (s *store) create(key string, size int64) (*writer, error) {
	if size > s.maxObject() || len(key) > maxKey {
		return nil, bodies.ErrTooLarge
	}
	w := &writer{store: s, key: key, size: size}
	w.Begin(w, size, &s.buffers)
	return w, nil
}

// Most implements [bodies.Sink].
func (w *writer) Most() int64 { return w.store.maxObject() }

// Save implements [bodies.Sink].
func (w *writer) Save(p []byte, off int64) error {
	err := w.append(p, off, nil)
	if err != nil {
		w.store.failed(err)
	}
	return err
}

// append writes bytes of the body, which begin at offset off, to the file, and then tail; a nil tail
// means that the body isn't complete. It creates the file if there is none.
func (w *writer) append(p []byte, off int64, tail []byte) error {
	w.store.opt.Beat.Begin()
	defer w.store.opt.Beat.End()
	if w.f == nil {
		id := w.store.lastID.Add(1)
		f, err := w.store.opt.FS.Create(w.store.tmpPath(id))
		if err != nil {
			return err
		}
		w.f, w.id = f, id
	}
	end := off + int64(len(p))
	w.reserve(end+int64(len(tail)), tail != nil)
	if len(p) > 0 {
		if _, err := w.f.WriteAt(p, off); err != nil {
			return err
		}
		w.store.written.Add(int64(len(p)))
		w.saved = end
	}
	if len(tail) > 0 {
		if _, err := w.f.WriteAt(tail, end); err != nil {
			return err
		}
	}
	return nil
}

// reserve reserves room for a file of n bytes: exactly so many if it is complete (all), otherwise
// in larger steps.
func (w *writer) reserve(n int64, all bool) {
	step := n - w.room
	if step <= 0 {
		return
	}
	if !all {
		step = (step + reserveStep - 1) / reserveStep * reserveStep
		if w.size >= n {
			step = min(step, w.size-w.room)
		}
	}
	w.store.reserve(step)
	w.room += step
	w.store.segments.makeRoom(0)
}

// Load implements [bodies.Sink].
func (w *writer) Load(p []byte, off, end int64, sums []uint64) (int, error) {
	b := blocks{store: w.store, f: w.f, body: end, sums: sums}
	defer b.park()
	got, err := b.at(off)
	if err != nil && !w.bad.Swap(true) {
		w.store.corrupt.Add(1)
		w.store.log.Warn("a body being received is corrupt on disk", "key", w.key, "error", err)
	}
	return copy(p, got), err
}

// Put implements [bodies.Sink].
func (w *writer) Put(m bodies.Meta) (bodies.Object, error) {
	s := w.store
	s.opt.Beat.Begin()
	defer s.opt.Beat.End()
	s.committing.RLock()
	defer s.committing.RUnlock()
	switch {
	case s.closed:
		return nil, bodies.ErrClosed
	case len(m.Data) > maxData:
		return nil, bodies.ErrTooLarge
	}
	labels := s.labelsOf(m.Data)
	o, pinned, err := w.place(m, labels)
	if err != nil {
		if !errors.Is(err, bodies.ErrCorrupt) {
			s.failed(err)
		}
		return nil, fmt.Errorf("store: not stored: %w", err)
	}
	w.giveBack()
	s.took()
	err = bodies.ErrNoMemory
	done := s.insert(o, labels, func(*object) bool {
		err = bodies.ErrUnwanted
		return m.Wanted == nil || m.Wanted()
	})
	s.segments.unpin(pinned)
	if !done {
		s.trash.drain() // a start must not find it
		return nil, err
	}
	s.inserts.Add(1)
	return o, nil
}

// place writes the complete body to its final place and makes its object. For pinned see
// [store.put].
func (w *writer) place(m bodies.Meta, labels []uint64) (o *object, pinned *segment, err error) {
	s := w.store
	rest, off, sums := w.Complete()
	st := stampOf(m, s.opt.Hooks.Now().UnixNano())
	if w.f == nil {
		sum := emptySum
		if len(sums.Blocks) > 0 {
			sum = sums.Blocks[0]
		}
		o, pinned, err = s.put(w.key, rest, sum, m.Data, labels, st, stateHeld)
		if !errors.Is(err, bodies.ErrTooLarge) {
			return o, pinned, err
		}
	}
	tail := appendTail(nil, sums.Size, sums.Blocks, w.key, m.Data, st)
	if err := w.append(rest, off, tail); err != nil {
		return nil, nil, err
	}
	if err := w.Corrupt(); err != nil {
		return nil, nil, err
	}
	id := s.lastID.Add(1) // in the order of commits, by which reload decides
	if err := s.rename(w.id, id); err != nil {
		return nil, nil, err
	}
	return newObject(w.key, newFile(id, sums.Size), id, sums.Size+int64(len(tail)), st), nil, nil
}

// Drop implements [bodies.Sink]. Followers can still read the open file.
func (w *writer) Drop() {
	if w.id != 0 {
		w.store.trash.remove(w.store.tmpPath(w.id))
		w.id = 0
	}
	w.giveBack()
}

// giveBack gives back the reserved room.
func (w *writer) giveBack() {
	if w.room > 0 {
		w.store.written.Add(-w.saved)
		w.store.reserve(-w.room)
		w.room = 0
	}
}

// Close implements [bodies.Sink].
func (w *writer) Close() {
	if w.f != nil {
		w.f.Close()
		w.f = nil
	}
}
