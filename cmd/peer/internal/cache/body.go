package cache

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const bufferSize = 64 << 10

// buffer returns one for parts of a body, which is to be spared afterwards.
func (c *Cache) buffer() []byte { return c.buffers.Get().(*[bufferSize]byte)[:] }

func (c *Cache) spare(buf []byte) { c.buffers.Put((*[bufferSize]byte)(buf)) }

// noBody reports whether responses of a status have no content.
func noBody(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// An exchange is the body of an origin's response, whose bytes are counted and whose end is the
// request's, and the memory of the request and of its answer.
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

// pausing is a body that may pause for so long between its bytes, and no longer.
type pausing struct {
	io.Reader
	clock *time.Timer
	limit time.Duration // 0 = for ever
}

// newPausing returns one that is broken off by cancel.
func newPausing(r io.Reader, limit time.Duration, cancel context.CancelCauseFunc) *pausing {
	clock := time.AfterFunc(limit, func() { cancel(errBetweenBytes) })
	clock.Stop()
	return &pausing{r, clock, limit}
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.limit > 0 {
		p.clock.Reset(p.limit)
		defer p.clock.Stop()
	}
	return p.Reader.Read(b)
}

// closing reads from one and closes another.
type closing struct {
	io.Reader
	io.Closer
}

// An upload is the body of a client's request on its way to the origin, which is
// charged neither with the time that the client takes nor with its faults. A connection
// that many requests share, as in HTTP/2, is not stuck for one of which nothing is taken:
// it has a clock of its own.
type upload struct {
	io.ReadCloser
	failed atomic.Pointer[clientError] // how reading it failed

	mu    sync.Mutex
	clock *time.Timer // runs while the origin is to take what was read; nil = it answered
	limit time.Duration
}

func (u *upload) Read(p []byte) (int, error) {
	u.charge(false)
	n, err := u.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		u.failed.Store(&clientError{err})
	}
	u.charge(err == nil) // from the last byte on, the header is waited for
	return n, err
}

// charge lets the origin's clock go on, anew, or stops it.
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

// time has the request cancelled when nothing of its body is taken within the limit, and
// returns what ends that.
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
