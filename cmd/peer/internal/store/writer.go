package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
)

const (
	memoryBody  = blockSize     // a body of unknown length stays in memory up to this length
	keptBody    = 2 * blockSize // of a longer body, or one of known length, this many bytes at most stay in memory
	maxWindow   = 4 * blockSize // of a body that passes through: so far its slowest follower may lag behind
	reserveStep = 1 << 20       // room that is reserved at a time

	lagTime = time.Second // how long other followers wait for the slowest one of a body that passes through
)

var (
	// ErrBrokenOff is returned to the followers of a body that ended before it was complete.
	ErrBrokenOff = errors.New("store: body broke off")
	// ErrNoFollower is returned when a body is neither stored nor followed.
	ErrNoFollower = errors.New("store: body can't be stored, and nobody follows it")
	// ErrBehind is returned to a follower that was so slow that others went on without it.
	ErrBehind = errors.New("store: body can't be stored, and others did not wait for this reader of it")
	// ErrTooLong is returned for bytes beyond the announced length of a body.
	ErrTooLong = errors.New("store: body is longer than announced")
	// ErrDiffers is returned when a source sends bytes that differ from those received before.
	ErrDiffers = errors.New("store: body differs from the bytes received before")
)

// A Writer receives the body of an object. One goroutine at a time calls Write, then End, then
// Commit. Abort may be called instead at any point; after Commit it does nothing. Any number of
// goroutines may [Writer.Follow] the body meanwhile.
//
// A body that can't be stored, because the disk fails or the body is larger
// than the store takes, passes through: its followers still get every byte, and only
// Commit returns the error. Bytes that are not on disk are then kept in
// memory, at most 256 KiB of them, until every follower has read them. The slowest follower
// sets the pace; one that keeps others waiting for a second is left behind ([ErrBehind]).
type Writer struct {
	store *Store
	key   string
	size  int64 // announced; -1 = unknown

	room int64 // reserved for this body

	mu        sync.Mutex
	got       Received
	window    []byte           // the last bytes received
	lent      *[blockSize]byte // memory of the window; nil = the window has its own
	base      int64            // offset of the window in the body
	f         File             // nil = none yet
	saved     int64            // bytes of the body that are in the file
	id        uint64           // of the temporary file, while it has that name; otherwise 0
	failure   error            // why the body will not be stored; nil = it will
	finished  bool             // committed or aborted
	ended     bool             // no more bytes will come
	err       error            // what followers read at the end; nil = io.EOF
	corrupt   error            // how a follower found the file corrupt; nil = it didn't
	followers []*Follower
	held      bool   // see Hold
	changed   signal // wakes followers when got or ended changes
	moved     signal // wakes Write when a follower advances or closes

	// Memory for the first checksum and follower: most bodies need no more.
	firstSum      [1]uint64
	firstFollower [1]*Follower
	follower      Follower
}

// Create starts an object; size is the length of the body in bytes, -1 if it
// isn't known. It returns [ErrTooLarge] for more than the store takes.
func (s *Store) Create(key string, size int64) (*Writer, error) {
	if size > s.maxObject() || len(key) > maxKey {
		return nil, ErrTooLarge
	}
	w := &Writer{store: s, key: key, size: size}
	w.got.sums, w.followers = w.firstSum[:0], w.firstFollower[:0]
	switch {
	case size > blockSize/4 && size <= blockSize:
		w.lent = s.buffers.Get().(*[blockSize]byte)
		w.window = w.lent[:0:size]
	case size >= 0:
		w.window = make([]byte, 0, min(size, keptBody))
	}
	return w, nil
}

// Free returns memory into which the next bytes may be read before they are given to Write, which
// then need not copy them. If it is empty, the caller needs memory of its own.
func (w *Writer) Free() []byte {
	if w.size > keptBody || w.failure != nil {
		return nil
	}
	return w.window[len(w.window):cap(w.window)]
}

// Write appends p to the body. It fails only if nobody can use the body: when the body is longer
// than announced ([ErrTooLong]) and, while it passes through, when ctx ends or nobody follows
// or holds it ([ErrNoFollower]). ctx bounds how long Write waits for the slowest follower.
func (w *Writer) Write(ctx context.Context, p []byte) error {
	total := w.got.n + int64(len(p))
	switch {
	case w.size >= 0 && total > w.size:
		return ErrTooLong
	case w.failure == nil && total > w.store.maxObject():
		w.giveUp(ErrTooLarge)
	}
	for len(p) > 0 { // each round takes bytes of p, makes room in the window, or raises its limit
		if room := w.limit() - len(w.window); room > 0 {
			k := min(room, len(p))
			w.take(p[:k])
			p = p[k:]
			continue
		}
		if w.failure == nil {
			w.save()
		} else if err := w.makeRoom(ctx); err != nil {
			return err
		}
	}
	return nil
}

// limit returns how many bytes the window may hold.
func (w *Writer) limit() int {
	if w.failure != nil {
		return maxWindow
	}
	if w.f == nil && w.size < 0 {
		return memoryBody
	}
	return keptBody
}

// take appends p to the window, where the followers find it.
func (w *Writer) take(p []byte) {
	w.mu.Lock()
	if free := w.window[len(w.window):cap(w.window)]; len(free) >= len(p) && &free[0] == &p[0] { // see Free
		w.window = w.window[:len(w.window)+len(p)]
	} else {
		w.window = append(w.window, p...)
	}
	w.got.Add(p)
	w.changed.give()
	w.mu.Unlock()
}

// save writes the window's unsaved bytes to the file, and keeps the last block in
// memory for followers that keep up. If writing fails, the body passes through.
func (w *Writer) save() {
	if err := w.append(nil); err != nil {
		w.store.failed(err)
		w.giveUp(err)
		if planted.Fault == "unwritable-store" {
			w.End(err)
		}
		return
	}
	w.mu.Lock()
	w.trimLocked(max(w.base, (w.got.n-1)/blockSize*blockSize))
	w.mu.Unlock()
}

// append writes the window's unsaved bytes to the file, and then tail; a nil tail means that
// the body isn't complete. It creates the file if there is none.
func (w *Writer) append(tail []byte) error {
	w.store.opt.Beat.Begin()
	defer w.store.opt.Beat.End()
	if w.f == nil {
		id := w.store.lastID.Add(1)
		f, err := w.store.opt.FS.Create(w.store.tmpPath(id))
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.f, w.id = f, id
		w.mu.Unlock()
	}
	w.reserve(w.got.n+int64(len(tail)), tail != nil)
	if b := w.window[w.saved-w.base:]; len(b) > 0 {
		if _, err := w.f.WriteAt(b, w.saved); err != nil {
			return err
		}
		w.store.written.Add(int64(len(b)))
		w.mu.Lock()
		w.saved = w.got.n
		w.mu.Unlock()
	}
	if len(tail) > 0 {
		if _, err := w.f.WriteAt(tail, w.got.n); err != nil {
			return err
		}
	}
	return nil
}

// giveUp lets the body pass through.
func (w *Writer) giveUp(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
	w.unnameLocked()
}

// makeRoom waits until the slowest follower has read a quarter of the window, and
// drops what all have read. A follower can read the whole window without another write. If one
// doesn't, makeRoom waits for lagTime if another follower has read everything, otherwise until ctx
// ends. It notices the end of a follower's own context within lagTime.
func (w *Writer) makeRoom(ctx context.Context) error {
	lag := time.NewTicker(lagTime)
	defer lag.Stop()
	late := false
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		slowest := w.got.n
		live, waits := 0, false
		for _, f := range w.followers {
			if f.ctx.Err() == nil && !f.behind {
				slowest = min(slowest, f.off)
				live++
				waits = waits || f.off == w.got.n
			}
		}
		switch {
		case live == 0 && (!w.held || w.base > w.saved): // there can't be another follower
			return ErrNoFollower
		case live > 0 && slowest-w.base >= maxWindow/4:
			w.trimLocked(slowest)
			return nil
		case late && waits:
			for _, f := range w.followers {
				f.behind = f.behind || f.off-w.base < maxWindow/4
			}
			continue // without them there is room
		}
		moved := w.moved.wait()
		w.mu.Unlock()
		select {
		case <-moved:
			w.mu.Lock()
		case <-lag.C:
			w.mu.Lock()
			late = true
		case <-ctx.Done():
			w.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

// trimLocked drops the part of the window before offset to. w.mu is held.
func (w *Writer) trimLocked(to int64) {
	w.window = w.window[:copy(w.window, w.window[to-w.base:])]
	w.base = to
}

// reserve reserves room for a file of n bytes: exactly so many if it is complete (all), otherwise
// in larger steps.
func (w *Writer) reserve(n int64, all bool) {
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

// A signal wakes all goroutines that wait for it. Its owner's lock guards it.
type signal struct{ given chan struct{} } // nil = nobody waits

func (s *signal) wait() <-chan struct{} {
	if s.given == nil {
		s.given = make(chan struct{})
	}
	return s.given
}

func (s *signal) give() {
	if s.given != nil {
		close(s.given)
		s.given = nil
	}
}

// Len returns how many bytes of the body were received. It is for the goroutine that writes.
func (w *Writer) Len() int64 { return w.got.n }

// Received returns the checksums of the bytes received so far, with which another source of the
// body can be checked. It must not be called during a Write. Later writes don't change the result.
func (w *Writer) Received() Sums { return w.got.Sums() }

// End ends the body: err is nil if it is complete. Followers that read to the end get io.EOF or
// err. If the body is shorter than announced, they get an error that says so, which End also
// returns.
func (w *Writer) End(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.size >= 0 && w.got.n != w.size {
		err = fmt.Errorf("%w after %d of %d bytes", ErrBrokenOff, w.got.n, w.size)
	}
	if !w.ended {
		w.ended, w.err = true, err
		w.changed.give()
	}
	return w.err
}

// Commit stores the complete body with the description m and returns the object. After an error, such
// as [ErrNoMemory], it is not stored, but followers still get the whole body if it is complete.
func (w *Writer) Commit(m Meta) (*Object, error) {
	if err := w.End(nil); err != nil {
		w.Abort()
		return nil, err
	}
	s := w.store
	s.opt.Beat.Begin()
	defer s.opt.Beat.End()
	s.committing.RLock()
	defer s.committing.RUnlock()
	switch {
	case s.closed:
		w.Abort()
		return nil, ErrClosed
	case w.failure != nil:
		w.Abort()
		return nil, fmt.Errorf("store: not stored: %w", w.failure)
	case len(m.Data) > maxData:
		w.Abort()
		return nil, ErrTooLarge
	}
	labels := s.labelsOf(m.Data)
	o, pinned, err := w.place(m, labels)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			s.failed(err)
		}
		w.Abort()
		return nil, fmt.Errorf("store: not stored: %w", err)
	}
	w.giveBack()
	s.took()
	done := s.insert(o, labels, func(*Object) bool { return true })
	s.segments.unpin(pinned)
	if !done {
		w.Abort()
		return nil, ErrNoMemory
	}
	s.inserts.Add(1)
	w.finish() // only now: until the object can be found, requests follow the body
	return o, nil
}

// place writes the complete body to its final place and makes its object. For pinned see
// [Store.put].
func (w *Writer) place(m Meta, labels []uint64) (o *Object, pinned *segment, err error) {
	s := w.store
	w.mu.Lock()
	w.got.seal()
	w.mu.Unlock()
	st := stampOf(m, s.opt.Now().UnixNano())
	if w.f == nil {
		sum := emptySum
		if len(w.got.sums) > 0 {
			sum = w.got.sums[0]
		}
		o, pinned, err = s.put(w.key, w.window, sum, m.Data, labels, st, stateHeld)
		if !errors.Is(err, ErrTooLarge) {
			return o, pinned, err
		}
	}
	tail := appendTail(nil, w.got.n, w.got.sums, w.key, m.Data, st)
	if err := w.append(tail); err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	err = w.corrupt
	w.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	id := s.lastID.Add(1) // in the order of commits, by which reload decides
	if err := s.rename(w.id, id); err != nil {
		return nil, nil, err
	}
	return newObject(w.key, newFile(id, w.got.n), id, w.got.n+int64(len(tail)), st), nil, nil
}

// Abort ends the body, unless it has ended, and removes its temporary file.
func (w *Writer) Abort() {
	w.End(ErrBrokenOff)
	w.mu.Lock()
	if !w.finished {
		w.unnameLocked()
	}
	w.mu.Unlock()
	w.finish()
}

// unnameLocked unlinks the temporary file; followers can still read the open file. w.mu is held.
func (w *Writer) unnameLocked() {
	if w.id != 0 {
		w.store.trash.remove(w.store.tmpPath(w.id))
		w.id = 0
	}
}

// finish gives back the reserved room, and lets go of the body unless it is followed or held.
func (w *Writer) finish() {
	w.giveBack()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true
	w.letGoLocked()
}

// giveBack gives back the reserved room.
func (w *Writer) giveBack() {
	if w.room > 0 {
		w.store.written.Add(-w.saved)
		w.store.reserve(-w.room)
		w.room = 0
	}
}

// letGoLocked gives up the file and the memory of a body that nobody can read any more.
func (w *Writer) letGoLocked() {
	if !w.finished || w.wantedLocked() {
		return
	}
	if w.f != nil {
		w.f.Close()
		w.f = nil
	}
	if w.lent != nil {
		w.store.buffers.Put(w.lent)
		w.lent, w.window = nil, nil
	}
}
