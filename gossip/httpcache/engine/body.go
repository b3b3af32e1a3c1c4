package engine

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

const bufferSize = 64 << 10

// buffer returns a buffer for parts of a body. The caller gives it back with spare.
func (c *Cache) buffer() []byte { return c.buffers.Get().(*[bufferSize]byte)[:] }

func (c *Cache) spare(buf []byte) { c.buffers.Put((*[bufferSize]byte)(buf)) }

// noBody reports whether responses of a status have no content.
func noBody(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// An exchange is the body of an origin's response: it counts its bytes, and closing it ends the
// request's context. It also is the memory for the request and its answer.
type exchange struct {
	request http.Request
	io.ReadCloser
	n      *atomic.Uint64
	cancel context.CancelCauseFunc
	answer answer
}

func (x *exchange) Read(p []byte) (int, error) {
	n, err := x.ReadCloser.Read(p)
	x.n.Add(uint64(n))
	return n, err
}

func (x *exchange) Close() error {
	err := x.ReadCloser.Close()
	x.cancel(nil)
	return err
}

// closing combines a reader with another closer.
type closing struct {
	io.Reader
	io.Closer
}
