package bodies

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// A Follower reads a body while it is being written. It is not safe for concurrent use.
type Follower struct {
	s   *Stream
	ctx context.Context
	// The rest is guarded by s.mu.
	off    int64
	place  int  // in s.followers; -1 = closed
	behind bool // the body went on without it
}

// Follow returns a reader of the whole body. Reading waits for bytes to arrive,
// until the body or ctx ends. The reader must be closed. Follow returns false if it is too late:
// the body passes through and its beginning is gone, or it was committed or aborted and
// nobody follows or holds it any more.
func (s *Stream) Follow(ctx context.Context) (*Follower, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished && !s.wantedLocked() || s.base > s.saved {
		return nil, false
	}
	f := &s.follower
	if f.s != nil { // it is in use, and never used again: a follower may be closed twice
		f = new(Follower)
	}
	*f = Follower{s: s, ctx: ctx, place: len(s.followers)}
	s.followers = append(s.followers, f)
	return f, true
}

// Hold keeps the body available for later followers. Until [Stream.Release], Follow
// succeeds even after Commit or Abort, and a body that passes through waits for a follower.
func (s *Stream) Hold() {
	s.mu.Lock()
	s.held = true
	s.mu.Unlock()
}

// Release ends the effect of Hold. It may be called twice.
func (s *Stream) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.moved.give()
	s.letGoLocked()
}

// wantedLocked reports whether somebody follows or holds the body.
func (s *Stream) wantedLocked() bool { return len(s.followers) > 0 || s.held }

// Read reads what has arrived, and waits for at least one byte. Bytes that are read back from the
// disk are checked first: if they differ from those received, Read returns an error that wraps
// [ErrCorrupt], and the body will not be stored. If the body passes through and went on without
// this reader, the error is [ErrBehind].
func (f *Follower) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.place < 0 {
		return 0, io.ErrClosedPipe
	}
	for f.off >= s.got.n {
		switch {
		case s.ended && s.err != nil:
			return 0, s.err
		case s.ended:
			return 0, io.EOF
		}
		changed := s.changed.wait()
		s.mu.Unlock()
		select {
		case <-changed:
			s.mu.Lock()
		case <-f.ctx.Done():
			s.mu.Lock()
			return 0, context.Cause(f.ctx)
		}
	}
	switch {
	case f.off >= s.base:
		k := copy(p, s.window[f.off-s.base:])
		f.advanceLocked(k)
		return k, nil
	case f.off < s.saved:
		end, sums := min(s.base, s.saved), s.got.sums
		s.mu.Unlock()
		k, err := s.sink.Load(p, f.off, end, sums)
		s.mu.Lock()
		if err != nil {
			s.corrupt = fmt.Errorf("%w: %w", ErrCorrupt, err)
			return 0, s.corrupt
		}
		f.advanceLocked(k)
		return k, nil
	}
	if f.behind {
		return 0, ErrBehind
	}
	return 0, context.Cause(f.ctx) // ctx ended, and so the body did not wait for f
}

func (f *Follower) advanceLocked(k int) {
	f.off += int64(k)
	f.s.moved.give()
}

// Whole returns the whole body, if it is complete and still in memory; else nil. It must not be
// changed, and is valid until Close.
func (f *Follower) Whole() []byte {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || s.err != nil || s.base > 0 {
		return nil
	}
	return s.window
}

// Ready reports whether Read would return without waiting. If it would not, the caller can
// flush what it has read.
func (f *Follower) Ready() bool {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.off < f.s.got.n || f.s.ended
}

// Sums returns the checksums of what has arrived: all of it once the body has ended, and else the whole blocks. If Read
// found the body corrupt, they cover everything that it returned before, since only whole blocks are read back.
func (f *Follower) Sums() Sums {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.ended {
		return f.s.got.Sums()
	}
	return Sums{slices.Clip(f.s.got.sums), f.s.got.n}
}

// Close frees the reader.
func (f *Follower) Close() error {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.place < 0 {
		return nil
	}
	last := len(s.followers) - 1
	s.followers[f.place] = s.followers[last]
	s.followers[f.place].place = f.place
	s.followers[last] = nil
	s.followers = s.followers[:last]
	f.place = -1
	s.moved.give()
	s.letGoLocked()
	return nil
}
