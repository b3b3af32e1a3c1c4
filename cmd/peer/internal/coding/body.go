package coding

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A body is that of an origin, compressed. Read is for one goroutine; Close may be
// called at any time.
type body struct {
	src      io.ReadCloser
	enc      encoder
	out      bytes.Buffer
	held     bool // enc has what is not in out yet
	err      error
	received *atomic.Uint64
	clock    *time.Timer

	pieces chan piece
	spare  chan []byte
	closed chan struct{}
	once   sync.Once

	reading sync.Mutex // held by Read
	release func()     // gives enc back; nil = it was
}

// A piece is what one Read of the origin's body gave.
type piece struct {
	data []byte
	err  error
}

func newBody(src io.ReadCloser, enc encoder, release func()) *body {
	b := &body{src: src, enc: enc, release: release, received: new(atomic.Uint64),
		pieces: make(chan piece), spare: make(chan []byte, 2), closed: make(chan struct{})}
	enc.Reset(&b.out)
	for range cap(b.spare) {
		b.spare <- make([]byte, 32<<10)
	}
	go b.pull()
	return b
}

// CountTo has the bytes counted that come from the origin. It is called before the
// first Read.
func (b *body) CountTo(n *atomic.Uint64) { b.received = n }

// pull reads ahead by a piece. It ends with the origin's body, or with Close, which
// ends a Read of that.
func (b *body) pull() {
	for {
		var buf []byte
		select {
		case buf = <-b.spare:
		case <-b.closed:
			return
		}
		n, err := b.src.Read(buf)
		select {
		case b.pieces <- piece{buf[:n], err}:
		case <-b.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read returns an error of the origin's body as it is: a response that is not whole
// must not look so. Each round of the loop takes a piece or
// flushes what it took, after which it has something to return.
func (b *body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	for b.out.Len() == 0 && b.err == nil {
		got, ok := b.next()
		if !ok {
			b.held, b.err = false, b.enc.Flush()
			continue
		}
		b.received.Add(uint64(len(got.data)))
		b.held = b.held || len(got.data) > 0
		if b.err = got.err; b.err == nil || b.err == io.EOF {
			if _, err := b.enc.Write(got.data); err != nil {
				b.err = err
			}
		}
		switch {
		case b.err == io.EOF:
			if err := b.enc.Close(); err != nil {
				b.err = err
			}
			b.giveBack()
		case b.err == nil:
			b.spare <- got.data[:cap(got.data)]
		}
	}
	n, _ := b.out.Read(p)
	if b.out.Len() > 0 {
		return n, nil
	}
	return n, b.err
}

// next waits for a piece; if it is not ok, the origin pauses with something held back.
func (b *body) next() (piece, bool) {
	select {
	case got := <-b.pieces:
		return got, true
	default:
	}
	var late <-chan time.Time
	if b.held {
		if b.clock == nil {
			b.clock = time.NewTimer(pause)
		} else {
			b.clock.Reset(pause)
		}
		defer b.clock.Stop()
		late = b.clock.C
	}
	select {
	case got := <-b.pieces:
		return got, true
	case <-late:
		return piece{}, false
	case <-b.closed:
		return piece{err: io.ErrClosedPipe}, true
	}
}

// Close ends the origin's body.
func (b *body) Close() (err error) {
	b.once.Do(func() {
		close(b.closed)
		err = b.src.Close()
	})
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.err == nil {
		b.err = io.ErrClosedPipe
	}
	b.giveBack()
	return err
}

func (b *body) giveBack() {
	if b.release != nil {
		b.release()
		b.enc, b.release = nil, nil
	}
}
