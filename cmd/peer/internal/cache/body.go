package cache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
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

// An upload is the body of a client's request on its way to the origin. The client's delays and
// errors do not count against the origin. The origin's delays are limited for each upload, not for
// the connection: many requests may share that (HTTP/2). A short one can be sent again.
type upload struct {
	io.ReadCloser
	failed atomic.Pointer[clientError] // how reading it failed

	mu    sync.Mutex
	clock *time.Timer // runs while the origin has to read the bytes that came; nil = it has answered
	limit time.Duration
	kept  []byte // what was read, until that is too long
	long  bool
	whole bool // it was read to its end
}

const keptOfUpload = 64 << 10 // bytes of a body that are kept to be sent again

var errUploadGone = errors.New("the origin closed the connection, and the request's body cannot be sent again")

func (u *upload) Read(p []byte) (int, error) {
	u.charge(false)
	n, err := u.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		u.failed.Store(bodyError(err))
	}
	u.charge(err == nil) // after the last byte the transport limits the wait for the header
	u.keep(p[:n], err == io.EOF)
	return n, err
}

func (u *upload) keep(p []byte, last bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.long = u.long || len(u.kept)+len(p) > keptOfUpload; u.long {
		u.kept = nil
		return
	}
	u.kept = append(u.kept, p...)
	u.whole = u.whole || last
}

// again returns the body from its beginning, if it was short and read to its end. It is the
// request's GetBody.
func (u *upload) again() (io.ReadCloser, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.whole {
		return nil, errUploadGone
	}
	return io.NopCloser(bytes.NewReader(u.kept)), nil
}

// charge starts the origin's clock, or stops it.
func (u *upload) charge(origin bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.clock == nil:
	case origin:
		u.clock.Reset(u.limit)
	default:
		u.clock.Stop()
	}
}

// time limits how long the origin may read nothing of the body: then the request is cancelled. The
// returned function ends that.
func (u *upload) time(limit time.Duration, cancel context.CancelCauseFunc) (answered func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit, u.clock = limit, time.AfterFunc(limit, func() { cancel(errSend) })
	u.clock.Stop() // until something is read
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.clock.Stop()
		u.clock = nil
	}
}
