package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	memoryBody  = 64 << 10 // a body stays in memory up to this length, and gets its file when it is complete
	reserveStep = 1 << 20  // room taken at a time for a body of unknown length
)

// ErrBrokenOff is what the followers of a body read when it ended before its end.
var ErrBrokenOff = errors.New("store: body broke off")

// A Writer receives the body of an object. One goroutine calls Write, then End,
// then Commit; Abort may be called instead at any point, and after Commit does
// nothing. Any number of goroutines may [Writer.Follow] the body meanwhile.
type Writer struct {
	store *Store
	key   string
	size  int64 // announced; -1 = unknown

	sum  *xxhash.Digest // of the chunk that n stands in
	sums []uint64       // of the whole chunks before
	room int64          // reserved for this body

	mu       sync.Mutex
	n        int64    // bytes written
	buf      []byte   // all of them, while they are few
	f        *os.File // all of them, else
	id       uint64   // the temporary file's, while there is one
	finished bool     // committed or aborted
	ended    bool     // no more bytes will come
	err      error    // what followers read at the end; nil = io.EOF
	rest     io.ReadCloser
	readers  int
	changed  chan struct{} // closed when n, ended or rest changes; nil if nobody waits
}

// Create starts an object; size is the length of the body in bytes, -1 if it
// isn't known. It returns [ErrTooLarge] for more than the store takes.
func (s *Store) Create(key string, size int64) (*Writer, error) {
	if size > s.maxObject.Load() || len(key) > maxKey {
		return nil, ErrTooLarge
	}
	w := &Writer{store: s, key: key, size: size, sum: xxhash.New()}
	if size >= 0 && size <= memoryBody {
		w.buf = make([]byte, 0, size)
	}
	return w, nil
}

// Write appends p to the body. After an error the body can't be completed: call
// [Writer.Divert] or [Writer.Abort]. n bytes of p can be read by followers.
func (w *Writer) Write(p []byte) (n int, err error) {
	total := w.n + int64(len(p))
	if total > w.store.maxObject.Load() || w.size >= 0 && total > w.size {
		return 0, ErrTooLarge
	}
	if w.f == nil && total <= memoryBody {
		w.mu.Lock()
		w.buf = append(w.buf, p...)
		w.advance(len(p))
		w.mu.Unlock()
		w.hash(p)
		return len(p), nil
	}
	w.store.opt.Beat.Begin()
	defer w.store.opt.Beat.End()
	if w.f == nil {
		if err := w.spill(); err != nil {
			return 0, err
		}
	}
	w.grow(total)
	n, err = w.f.Write(p)
	w.mu.Lock()
	w.advance(n)
	w.mu.Unlock()
	w.hash(p[:n])
	if err != nil {
		w.store.failed(err)
		return n, fmt.Errorf("store: %w", err)
	}
	return n, nil
}

// spill moves the body from memory to a temporary file.
func (w *Writer) spill() error {
	id := w.store.lastID.Add(1)
	f, err := os.OpenFile(w.store.tmpPath(id), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		w.grow(max(w.size, w.n))
		if _, err = f.Write(w.buf); err != nil {
			f.Close()
			os.Remove(w.store.tmpPath(id))
		}
	}
	if err != nil {
		w.store.failed(err)
		return fmt.Errorf("store: %w", err)
	}
	w.mu.Lock()
	w.f, w.id, w.buf = f, id, nil
	w.mu.Unlock()
	return nil
}

// grow reserves room for a body of n bytes.
func (w *Writer) grow(n int64) {
	if n > w.room {
		step := (n - w.room + reserveStep - 1) / reserveStep * reserveStep
		if w.size >= 0 {
			step = w.size - w.room
		}
		w.store.reserve(step)
		w.room += step
	}
}

// hash takes p into the chunks' checksums.
func (w *Writer) hash(p []byte) {
	at := int(w.n-int64(len(p))) % chunkSize
	for len(p) > 0 {
		k := min(len(p), chunkSize-at)
		w.sum.Write(p[:k])
		if at += k; at == chunkSize {
			w.sums = append(w.sums, w.sum.Sum64())
			w.sum.Reset()
			at = 0
		}
		p = p[k:]
	}
}

// advance makes n more bytes visible to the followers. w.mu is held.
func (w *Writer) advance(n int) {
	w.n += int64(n)
	w.wakeLocked()
}

func (w *Writer) wakeLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// End says that the body is complete (err = nil) or that no more of it will
// come. Followers that read to the end get io.EOF or err. Ending a body short of
// its announced size is an error of its own.
func (w *Writer) End(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && w.size >= 0 && w.n != w.size {
		err = fmt.Errorf("%w after %d of %d bytes", ErrBrokenOff, w.n, w.size)
	}
	if !w.ended {
		w.ended, w.err = true, err
		w.wakeLocked()
	}
	return w.err
}

// Divert gives up storing the body without breaking off its delivery: the first
// follower that has read everything written so far goes on with rest, and so
// only one can. The others get [ErrBrokenOff]. Rest is closed with that
// follower, or at once if there is none. The caller need not call End or Abort.
func (w *Writer) Divert(rest io.ReadCloser) {
	w.mu.Lock()
	orphan := w.readers == 0
	w.ended, w.err = true, ErrBrokenOff
	if !orphan {
		w.rest = rest
	}
	w.wakeLocked()
	w.mu.Unlock()
	if orphan {
		rest.Close()
	}
	w.Abort()
}

// Commit puts the complete body into the store under m and returns the object.
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
	if s.closed {
		w.Abort()
		return nil, ErrClosed
	}
	if len(m.Data) > maxData {
		w.Abort()
		return nil, ErrTooLarge
	}
	o, err := w.place(m)
	if err != nil {
		s.failed(err)
		w.Abort()
		return nil, fmt.Errorf("store: %w", err)
	}
	w.finish()
	s.inserts.Add(1)
	s.insert(o)
	return o, nil
}

// place completes the file and gives it its name.
func (w *Writer) place(m Meta) (*Object, error) {
	s := w.store
	if w.n%chunkSize != 0 {
		w.sums = append(w.sums, w.sum.Sum64())
	}
	now := time.Now().UnixNano()
	id := w.id
	var tail []byte
	if w.f == nil {
		id = s.lastID.Add(1)
		whole := append(make([]byte, 0, len(w.buf)+len(w.key)+len(m.Data)+footerSize+8), w.buf...)
		whole = appendTail(whole, w.n, w.sums, w.key, m, now)
		tail = whole[w.n:]
		if err := os.WriteFile(s.tmpPath(id), whole, 0o600); err != nil {
			os.Remove(s.tmpPath(id))
			return nil, err
		}
	} else {
		tail = appendTail(nil, w.n, w.sums, w.key, m, now)
		if _, err := w.f.Write(tail); err != nil {
			return nil, err
		}
	}
	if err := s.rename(id); err != nil {
		os.Remove(s.tmpPath(id))
		return nil, err
	}
	f := &file{id: id, body: w.n, written: now}
	f.refs.Store(1)
	f.verified.Store(true)
	return s.newObject(w.key, f, w.n+int64(len(tail)), m), nil
}

// Abort ends the body, if nobody did, and removes what was written of it.
func (w *Writer) Abort() {
	w.End(ErrBrokenOff)
	w.mu.Lock()
	id, done := w.id, w.finished
	w.mu.Unlock()
	if !done && id != 0 {
		os.Remove(w.store.tmpPath(id))
	}
	w.finish()
}

// finish gives back the room, and closes the file unless followers read it.
func (w *Writer) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished {
		return
	}
	w.finished = true
	if w.room > 0 {
		w.store.reserve(-w.room)
	}
	w.closeFileLocked()
}

func (w *Writer) closeFileLocked() {
	if w.finished && w.readers == 0 && w.f != nil {
		w.f.Close()
		w.f = nil
	}
}
