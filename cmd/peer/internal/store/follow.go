package store

import (
	"context"
	"io"
	"os"
)

// A Follower reads a body while it is being written. It is not safe for
// concurrent use.
type Follower struct {
	w      *Writer
	ctx    context.Context
	off    int64
	rest   io.ReadCloser // the body's end, past the store (see Writer.Divert)
	closed bool
}

// Follow returns a reader of the whole body. Reading waits for bytes to arrive,
// until the body ends or ctx does. It must be closed. Once the body was committed
// or aborted, it can be followed only for as long as somebody still does; Follow
// returns false when it comes too late.
func (w *Writer) Follow(ctx context.Context) (*Follower, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.finished && w.readers == 0 {
		return nil, false
	}
	w.readers++
	return &Follower{w: w, ctx: ctx}, true
}

// Read reads what has arrived, waiting for at least one byte.
func (f *Follower) Read(p []byte) (int, error) {
	if f.rest != nil {
		return f.rest.Read(p)
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		mem, file, n, err := f.await()
		switch {
		case err != nil:
			return 0, err
		case f.rest != nil:
			return f.rest.Read(p)
		case file != nil:
			k, err := file.ReadAt(p[:min(int64(len(p)), n)], f.off)
			f.off += int64(k)
			if k > 0 {
				err = nil
			}
			return k, err
		default:
			k := copy(p, mem)
			f.off += int64(k)
			return k, nil
		}
	}
}

// await waits until bytes stand at f.off and says where: in memory, or n of them
// in a file. At the end of the body it returns its error, io.EOF if it has none,
// or sets f.rest.
func (f *Follower) await() (mem []byte, file *os.File, n int64, err error) {
	w := f.w
	for {
		w.mu.Lock()
		switch {
		case f.off < w.n && w.f != nil:
			file, n = w.f, w.n-f.off
			w.mu.Unlock()
			return nil, file, n, nil
		case f.off < w.n:
			mem = w.buf[f.off:w.n]
			w.mu.Unlock()
			return mem, nil, 0, nil
		case w.rest != nil:
			f.rest, w.rest = w.rest, nil
			w.mu.Unlock()
			return nil, nil, 0, nil
		case w.ended:
			err := w.err
			w.mu.Unlock()
			if err == nil {
				err = io.EOF
			}
			return nil, nil, 0, err
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-f.ctx.Done():
			return nil, nil, 0, context.Cause(f.ctx)
		}
	}
}

// Ready reports whether Read would return without waiting. A writer to a slow
// client flushes what it has when it is not.
func (f *Follower) Ready() bool {
	if f.rest != nil {
		return false
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.off < f.w.n || f.w.ended
}

// Close frees the reader.
func (f *Follower) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	w := f.w
	w.mu.Lock()
	w.readers--
	rest := f.rest
	if w.readers == 0 && w.rest != nil { // nobody is left to read it
		rest, w.rest = w.rest, nil
	}
	w.closeFileLocked()
	w.mu.Unlock()
	if rest != nil {
		return rest.Close()
	}
	return nil
}
