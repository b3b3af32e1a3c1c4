package coding

import (
	"bufio"
	"cmp"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A body is the compressed form of an origin's body. A goroutine compresses that from the first
// Read on. Close may be called at any time.
type body struct {
	*io.PipeReader
	out      *io.PipeWriter
	src      io.ReadCloser
	enc      encoder
	release  func() // returns enc to the Compressor
	received *atomic.Uint64
	begin    sync.Once // starts the goroutine or, at a Close before any Read, releases enc
}

func newBody(src io.ReadCloser, enc encoder, release func()) *body {
	b := &body{src: src, enc: enc, release: release, received: new(atomic.Uint64)}
	b.PipeReader, b.out = io.Pipe()
	return b
}

// CountTo sets the counter of the bytes from the origin. Call it before the first Read.
func (b *body) CountTo(n *atomic.Uint64) { b.received = n }

// Read returns errors of the origin's body unchanged, so that an incomplete response is not taken
// for a complete one.
func (b *body) Read(p []byte) (int, error) {
	b.begin.Do(func() { go b.compress() })
	return b.PipeReader.Read(p)
}

// Close closes the origin's body, which ends the goroutine.
func (b *body) Close() error {
	b.begin.Do(b.release)
	b.PipeReader.Close()
	return b.src.Close()
}

// compress compresses the body to its end. When the origin pauses, everything received so far is
// flushed, which costs a few bytes.
func (b *body) compress() {
	out := bufio.NewWriterSize(b.out, bufferSize)
	b.enc.Reset(out)
	var mu sync.Mutex // guards enc, out and held; its holder may wait for the reader
	held := false     // enc or out has bytes that the reader lacks
	flush := time.AfterFunc(pause, func() {
		mu.Lock()
		defer mu.Unlock()
		if held {
			held = false
			b.enc.Flush() // the next write returns an error
			out.Flush()
		}
	})
	buf := make([]byte, bufferSize)
	var err error
	for err == nil { // each round reads a part of the body
		var n int
		n, err = b.src.Read(buf)
		b.received.Add(uint64(n))
		flush.Stop()
		mu.Lock()
		if _, werr := b.enc.Write(buf[:n]); werr != nil {
			err = werr
		}
		held = held || n > 0
		mu.Unlock()
		flush.Reset(pause)
	}
	flush.Stop()
	mu.Lock()
	defer mu.Unlock()
	held = false
	if err == io.EOF {
		err = cmp.Or(b.enc.Close(), out.Flush(), io.EOF)
	}
	b.out.CloseWithError(err)
	b.release()
}
