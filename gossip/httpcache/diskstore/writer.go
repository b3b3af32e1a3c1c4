package diskstore

import (
	"errors"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

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
	id    uint64      // of the file, until an object has it; otherwise 0
	bad   atomic.Bool // a follower found the file corrupt
}

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

func (w *writer) Most() int64 { return w.store.maxObject() }

func (w *writer) Save(p []byte, off int64) error {
	err := w.append(p, off, false)
	if err != nil {
		w.store.failed(err)
	}
	return err
}

// append writes bytes of the body, which begin at offset off, to the file. all means that the body is complete. It
// creates the file if there is none.
func (w *writer) append(p []byte, off int64, all bool) error {
	if err := w.store.writes.begin(); err != nil {
		return err
	}
	defer w.store.writes.end()
	w.store.opt.Beat.Begin()
	defer w.store.opt.Beat.End()
	if w.f == nil {
		id := w.store.lastID.Add(1)
		f, err := w.store.createFile(w.store.path(id))
		if err != nil {
			return err
		}
		w.f, w.id = f, id
	}
	end := off + int64(len(p))
	w.claim(end, all)
	if len(p) > 0 {
		if _, err := w.f.WriteAt(p, off); err != nil {
			return err
		}
		w.store.written.Add(int64(len(p)))
		w.saved = end
	}
	return nil
}

// claim reserves room for a file of n bytes: exactly so many if it is complete (all), otherwise in larger steps.
func (w *writer) claim(n int64, all bool) {
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
	w.store.makeRoom()
}

func (w *writer) Load(p []byte, off, end int64, sums []uint64) (int, error) {
	b := blocks{store: w.store, f: w.f, body: end, sums: sums, trust: new(trust)}
	defer b.park()
	got, err := b.at(off)
	if err != nil && !w.bad.Swap(true) {
		w.store.corrupt.Add(1)
		w.store.log.Warn("a body being received is corrupt on disk", "key", w.key, "error", err)
	}
	return copy(p, got), err
}

func (w *writer) Put(m bodies.Meta) (bodies.Object, error) {
	s := w.store
	s.opt.Beat.Begin()
	defer s.opt.Beat.End()
	o, err := w.put(m)
	if err != nil {
		s.failed(err)
		return nil, err
	}
	w.giveBack()
	s.room.Lock()
	s.room.refusals = 0
	s.room.Unlock()
	s.inserts.Add(1)
	return o, nil
}

// put stores the complete body, in the log or in a file.
func (w *writer) put(m bodies.Meta) (*object, error) {
	rest, off, sums := w.Complete()
	if w.f == nil && sums.Size <= blockSize {
		sum := emptySum
		if len(sums.Blocks) > 0 {
			sum = sums.Blocks[0]
		}
		o, err := w.store.commit(w.key, nil, rest, sum, sums.Size, m, nil)
		if !errors.Is(err, bodies.ErrTooLarge) {
			return o, err
		}
	}
	if err := w.append(rest, off, true); err != nil {
		return nil, err
	}
	if err := w.Corrupt(); err != nil {
		return nil, err
	}
	content := appendUint64s(nil, sums.Blocks)
	f := newFile(w.id, sums.Size)
	w.id = 0
	return w.store.commit(w.key, f, content, xxhash.Sum64(content), sums.Size, m, nil)
}

// Drop removes the file, which followers can still read.
func (w *writer) Drop() {
	if w.id != 0 {
		w.store.trash(w.store.path(w.id))
		w.store.segments.turn()
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

func (w *writer) Close() {
	if w.f != nil {
		w.f.Close()
		w.f = nil
	}
}
