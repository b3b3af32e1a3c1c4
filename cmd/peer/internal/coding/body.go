package coding

import (
	"bufio"
	"cmp"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A body is the compressed form of an origin's body. A goroutine compresses what the origin
// sends, from the first Read on. Close may be called at any time.
type body struct {
	*io.PipeReader
	out      *io.PipeWriter
	src      io.ReadCloser
	enc      encoder
	release  func() // gives enc back
	received *atomic.Uint64
	begin    sync.Once // the goroutine, or the end without one
}

func newBody(src io.ReadCloser, enc encoder, release func()) *body {
	b := &body{src: src, enc: enc, release: release, received: new(atomic.Uint64)}
	b.PipeReader, b.out = io.Pipe()
	return b
}

// CountTo has the bytes counted that come from the origin. It is called before the
// first Read.
func (b *body) CountTo(n *atomic.Uint64) { b.received = n }

// Read returns an error of the origin's body as it is: an incomplete response must not look
// complete.
func (b *body) Read(p []byte) (int, error) {
	b.begin.Do(func() { go b.compress() })
	return b.PipeReader.Read(p)
}

// Close ends the origin's body, and by that the goroutine.
func (b *body) Close() error {
	b.begin.Do(b.release)
	b.PipeReader.Close()
	return b.src.Close()
}

// compress compresses the body to its end. When the origin pauses, everything that it sent is
// flushed, at the price of some bytes.
func (b *body) compress() {
	out := bufio.NewWriterSize(b.out, bufferSize)
	b.enc.Reset(out)
	var mu sync.Mutex // guards enc and out; its holder may wait for the reader
	held := false     // the reader lacks something that enc or out has
	flush := time.AfterFunc(pause, func() {
		mu.Lock()
		defer mu.Unlock()
		if held {
			held = false
			b.enc.Flush() // an error shows at the next write
			out.Flush()
		}
	})
	buf := make([]byte, bufferSize)
	var err error
	for err == nil { // each round takes a piece of the body
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
