package store

import (
	"context"
	"fmt"
	"io"
)

// A Follower reads a body while it is being written. It is not safe for concurrent use.
type Follower struct {
	w   *Writer
	ctx context.Context
	// The rest is guarded by w.mu.
	off    int64
	place  int  // in w.followers; -1 = closed
	behind bool // the body went on without it
}

// Follow returns a reader of the whole body. Reading waits for bytes to arrive,
// until the body or ctx ends. The reader must be closed. Follow returns false if it is too late:
// the body passes through and its beginning is gone, or it was committed or aborted and
// nobody follows or holds it any more.
func (w *Writer) Follow(ctx context.Context) (*Follower, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished && !w.wantedLocked() || w.base > w.saved {
		return nil, false
	}
	f := &w.follower
	if f.w != nil { // it is in use, and never used again: a follower may be closed twice
		f = new(Follower)
	}
	*f = Follower{w: w, ctx: ctx, place: len(w.followers)}
	w.followers = append(w.followers, f)
	return f, true
}

// Hold keeps the body available for later followers. Until [Writer.Release], Follow
// succeeds even after Commit or Abort, and a body that passes through waits for a follower.
func (w *Writer) Hold() {
	w.mu.Lock()
	w.held = true
	w.mu.Unlock()
}

// Release ends the effect of Hold. It may be called twice.
func (w *Writer) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = false
	w.moved.give()
	w.letGoLocked()
}

// wantedLocked reports whether somebody follows or holds the body.
func (w *Writer) wantedLocked() bool { return len(w.followers) > 0 || w.held }

// Read reads what has arrived, and waits for at least one byte. Bytes that are read back from the
// disk are checked first: if they differ from those received, Read returns an error that wraps
// [ErrCorrupt], and the body will not be stored. If the body passes through and went on without
// this reader, the error is [ErrBehind].
func (f *Follower) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for f.off >= w.got.n {
		switch {
		case w.ended && w.err != nil:
			return 0, w.err
		case w.ended:
			return 0, io.EOF
		}
		changed := w.changed.wait()
		w.mu.Unlock()
		select {
		case <-changed:
			w.mu.Lock()
		case <-f.ctx.Done():
			w.mu.Lock()
			return 0, context.Cause(f.ctx)
		}
	}
	switch {
	case f.off >= w.base:
		k := copy(p, w.window[f.off-w.base:])
		f.advanceLocked(k)
		return k, nil
	case f.off < w.saved:
		b := blocks{store: w.store, f: w.f, body: min(w.base, w.saved), sums: w.got.sums}
		w.mu.Unlock()
		got, err := b.at(f.off)
		k := copy(p, got)
		b.park()
		w.mu.Lock()
		if err != nil {
			return 0, w.corruptLocked(err)
		}
		f.advanceLocked(k)
		return k, nil
	}
	if f.behind {
		return 0, ErrBehind
	}
	return 0, context.Cause(f.ctx) // ctx ended, and so the body did not wait for f
}

// corruptLocked notes that a follower found the file corrupt, so that the body is not
// stored. w.mu is held.
func (w *Writer) corruptLocked(cause error) error {
	cause = fmt.Errorf("%w: %w", ErrCorrupt, cause)
	if w.corrupt == nil {
		w.corrupt = cause
		w.store.corrupt.Add(1)
		w.store.log.Warn("a body being received is corrupt on disk", "key", w.key, "error", cause)
	}
	return w.corrupt
}

func (f *Follower) advanceLocked(k int) {
	f.off += int64(k)
	f.w.moved.give()
}

// Whole returns the whole body, if it is complete and still in memory; else nil. It must not be
// changed, and is valid until Close.
func (f *Follower) Whole() []byte {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended || w.err != nil || w.base > 0 {
		return nil
	}
	return w.window
}

// Ready reports whether Read would return without waiting. If it would not, the caller can
// flush what it has read.
func (f *Follower) Ready() bool {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.off < f.w.got.n || f.w.ended
}

// Close frees the reader.
func (f *Follower) Close() error {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.place < 0 {
		return nil
	}
	last := len(w.followers) - 1
	w.followers[f.place] = w.followers[last]
	w.followers[f.place].place = f.place
	w.followers[last] = nil
	w.followers = w.followers[:last]
	f.place = -1
	w.moved.give()
	w.letGoLocked()
	return nil
}
