package bodies

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

const (
	memoryBody = BlockSize     // a body of unknown length is not saved up to this length
	keptBody   = 2 * BlockSize // of a longer body, or one of known length, this many bytes at most are not saved
	maxWindow  = 4 * BlockSize // of a body that passes through: so far its slowest follower may lag behind

	lagTime = time.Second // how long other followers wait for the slowest one of a body that passes through
)

// A Sink is where a store keeps the body of a [Stream]. Its methods are called by the goroutine that
// writes, except Load and Close.
type Sink interface {
	// Most returns the length of the longest body that the store takes.
	Most() int64
	// Save saves the next bytes of the body, which begin at offset off. After an error the body
	// passes through.
	Save(p []byte, off int64) error
	// Load reads saved bytes into p, from offset off up to the end of its block or to offset end, and
	// checks them by the sums. Followers call it, several at a time.
	Load(p []byte, off, end int64, sums []uint64) (int, error)
	// Put stores the complete body under its description.
	Put(m Meta) (Object, error)
	// Drop says that the body will not be stored. What was saved can still be loaded. It may be
	// called twice.
	Drop()
	// Close says that nothing will be loaded any more. It is called with a lock of the stream held.
	Close()
}

// A Stream is the body of an object on its way into a store. One goroutine at a time calls Write,
// then End, then Commit. Abort may be called instead at any point; after Commit it does nothing. Any
// number of goroutines may [Stream.Follow] the body meanwhile.
//
// A body that can't be stored, because the disk fails or the body is larger
// than the store takes, passes through: its followers still get every byte, and only
// Commit returns the error. Bytes that are not saved are then kept in
// memory, at most 256 KiB of them, until every follower has read them. The slowest follower
// sets the pace; one that keeps others waiting for a second is left behind ([ErrBehind]).
type Stream struct {
	sink    Sink
	size    int64      // announced; -1 = unknown
	whole   bool       // what is saved stays in the window
	buffers *sync.Pool // of lent

	mu        sync.Mutex
	got       Received
	window    []byte           // the last bytes received
	lent      *[BlockSize]byte // memory of the window; nil = the window has its own
	base      int64            // offset of the window in the body
	saved     int64            // bytes of the body that the sink has
	failure   error            // why the body will not be stored; nil = it will
	finished  bool             // committed or aborted
	ended     bool             // no more bytes will come
	err       error            // what followers read at the end; nil = io.EOF
	corrupt   error            // what a follower found wrong with the saved bytes; nil = nothing
	followers []*Follower
	held      bool   // see Hold
	changed   signal // wakes followers when got or ended changes
	moved     signal // wakes Write when a follower advances or closes

	// Memory for the first checksum and follower: most bodies need no more.
	firstSum      [1]uint64
	firstFollower [1]*Follower
	follower      Follower
}

// Begin begins a body of so many bytes, -1 = unknown. buffers has *[BlockSize]byte, for the window;
// nil = the whole body is kept in the window, which the sink may take over in Put.
func (s *Stream) Begin(sink Sink, size int64, buffers *sync.Pool) {
	s.sink, s.size, s.whole, s.buffers = sink, size, buffers == nil, buffers
	s.got.sums, s.followers = s.firstSum[:0], s.firstFollower[:0]
	switch {
	case size > BlockSize/4 && size <= BlockSize && !s.whole:
		s.lent = buffers.Get().(*[BlockSize]byte)
		s.window = s.lent[:0:size]
	case size >= 0:
		s.window = make([]byte, 0, min(size, keptBody))
	}
}

// Free returns memory into which the next bytes may be read before they are given to Write, which
// then need not copy them. If it is empty, the caller needs memory of its own.
func (s *Stream) Free() []byte {
	if s.size > keptBody || s.failure != nil {
		return nil
	}
	return s.window[len(s.window):cap(s.window)]
}

// Write appends p to the body. It fails only if nobody can use the body: when the body is longer
// than announced ([ErrTooLong]) and, while it passes through, when ctx ends or nobody follows
// or holds it ([ErrNoFollower]). ctx bounds how long Write waits for the slowest follower.
func (s *Stream) Write(ctx context.Context, p []byte) error {
	total := s.got.n + int64(len(p))
	switch {
	case s.size >= 0 && total > s.size:
		return ErrTooLong
	case s.failure == nil && total > s.sink.Most():
		s.giveUp(ErrTooLarge)
	}
	for len(p) > 0 { // each round takes bytes of p, makes room in the window, or raises its limit
		if room := s.limit() - len(s.window); room > 0 {
			k := min(room, len(p))
			s.take(p[:k])
			p = p[k:]
			continue
		}
		if s.failure == nil {
			s.save()
		} else if err := s.makeRoom(ctx); err != nil {
			return err
		}
	}
	return nil
}

// limit returns how many bytes the window may hold.
func (s *Stream) limit() int {
	switch {
	case s.failure != nil:
		return maxWindow
	case s.saved == 0 && s.size < 0:
		return memoryBody
	case s.whole:
		return int(min(s.saved, math.MaxInt-keptBody)) + keptBody
	}
	return keptBody
}

// take appends p to the window, where the followers find it.
func (s *Stream) take(p []byte) {
	s.mu.Lock()
	if free := s.window[len(s.window):cap(s.window)]; len(free) >= len(p) && &free[0] == &p[0] { // see Free
		s.window = s.window[:len(s.window)+len(p)]
	} else {
		s.window = append(s.window, p...)
	}
	s.got.Add(p)
	s.changed.give()
	s.mu.Unlock()
}

// save gives the window's unsaved bytes to the sink, and keeps the last block in
// memory for followers that keep up. If saving fails, the body passes through.
func (s *Stream) save() {
	if err := s.sink.Save(s.window[s.saved-s.base:], s.saved); err != nil {
		s.giveUp(err)
		return
	}
	s.mu.Lock()
	s.saved = s.got.n
	if !s.whole {
		s.trimLocked(max(s.base, (s.got.n-1)/BlockSize*BlockSize))
	}
	s.mu.Unlock()
}

// giveUp lets the body pass through.
func (s *Stream) giveUp(err error) {
	s.mu.Lock()
	s.failure = err
	if s.whole {
		s.saved = 0 // in the window, and nowhere else
	}
	s.mu.Unlock()
	s.sink.Drop()
}

// makeRoom waits until the slowest follower has read a quarter of the window, and
// drops what all have read. A follower can read the whole window without another write. If one
// doesn't, makeRoom waits for lagTime if another follower has read everything, otherwise until ctx
// ends. It notices the end of a follower's own context within lagTime.
func (s *Stream) makeRoom(ctx context.Context) error {
	lag := time.NewTicker(lagTime)
	defer lag.Stop()
	late := false
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		slowest := s.got.n
		live, waits := 0, false
		for _, f := range s.followers {
			if f.ctx.Err() == nil && !f.behind {
				slowest = min(slowest, f.off)
				live++
				waits = waits || f.off == s.got.n
			}
		}
		switch {
		case live == 0 && (!s.held || s.base > s.saved): // there can't be another follower
			return ErrNoFollower
		case live > 0 && slowest-s.base >= maxWindow/4:
			s.trimLocked(slowest)
			return nil
		case late && waits:
			for _, f := range s.followers {
				f.behind = f.behind || f.off-s.base < maxWindow/4
			}
			continue // without them there is room
		}
		moved := s.moved.wait()
		s.mu.Unlock()
		select {
		case <-moved:
			s.mu.Lock()
		case <-lag.C:
			s.mu.Lock()
			late = true
		case <-ctx.Done():
			s.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

// trimLocked drops the part of the window before offset to. s.mu is held.
func (s *Stream) trimLocked(to int64) {
	rest := s.window[to-s.base:]
	if len(rest) <= maxWindow { // a long one is not moved each time
		rest = s.window[:copy(s.window, rest)]
	}
	s.window, s.base = rest, to
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

// End ends the body: err is nil if it is complete. Followers that read to the end get io.EOF or
// err. If the body is shorter than announced, they get an error that says so, which End also
// returns.
func (s *Stream) End(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.size >= 0 && s.got.n != s.size {
		err = fmt.Errorf("%w after %d of %d bytes", ErrBrokenOff, s.got.n, s.size)
	}
	if !s.ended {
		s.ended, s.err = true, err
		s.changed.give()
	}
	return s.err
}

// Commit stores the complete body with the description m and returns the object. After an error, such
// as [ErrNoMemory], it is not stored, but followers still get the whole body if it is complete.
func (s *Stream) Commit(m Meta) (Object, error) {
	err := s.End(nil)
	var o Object
	switch {
	case err != nil:
	case s.failure != nil:
		err = fmt.Errorf("store: not stored: %w", s.failure)
	default:
		o, err = s.sink.Put(m)
	}
	if err != nil {
		s.Abort()
		return nil, err
	}
	s.finish() // only now: until the object can be found, requests follow the body
	return o, nil
}

// Complete returns what the sink needs in Put: the bytes that are in the window only, their offset, and
// the checksums of the whole body.
func (s *Stream) Complete() (rest []byte, off int64, sums Sums) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got.seal()
	sums = Sums{s.got.sums, s.got.n}
	if s.whole {
		return s.window, 0, sums
	}
	return s.window[s.saved-s.base:], s.saved, sums
}

// Corrupt returns what a follower found wrong with the saved bytes: then the body must not be stored.
func (s *Stream) Corrupt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.corrupt
}

// InMemory returns how many bytes of the body are in memory.
func (s *Stream) InMemory() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.window)
}

// Abort ends the body, unless it has ended, and drops what was saved of it.
func (s *Stream) Abort() {
	s.End(ErrBrokenOff)
	if !s.finished {
		s.sink.Drop()
	}
	s.finish()
}

// finish lets go of the body unless it is followed or held.
func (s *Stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	s.letGoLocked()
}

// letGoLocked gives up the sink and the memory of a body that nobody can read any more.
func (s *Stream) letGoLocked() {
	if !s.finished || s.wantedLocked() {
		return
	}
	s.sink.Close()
	if s.lent != nil {
		s.buffers.Put(s.lent)
		s.lent, s.window = nil, nil
	}
}
