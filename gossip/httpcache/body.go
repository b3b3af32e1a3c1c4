package httpcache

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
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

// A readingView is a view that is closed with the reader of its body, once.
type readingView struct {
	io.Reader
	view bodies.View
	once sync.Once
}

func (v *readingView) Close() (err error) {
	v.once.Do(func() { err = v.view.Close() })
	return err
}

// An upload is the body of a client's request on its way to the origin. The client's delays and
// errors do not count against the origin. The origin's delays are limited for each upload, not for
// the connection: many requests may share that (HTTP/2). While it is short it can be sent again from
// its beginning.
type upload struct {
	body      io.Reader
	interrupt io.Closer                   // what Close closes; nil = nothing
	failed    atomic.Pointer[clientError] // how reading it failed

	reading sync.Mutex // held while body is read

	mu      sync.Mutex
	clock   *time.Timer // runs while the origin has to read the bytes that came; nil = it has answered
	limit   time.Duration
	kept    []byte // what was read, until that is too long to be kept
	long    bool
	ended   error // of body
	attempt int   // the number of the attempt that may read, from 0
	sent    int   // bytes that it has read, unless long
}

// An uploadAgain is the body for a further attempt.
type uploadAgain struct {
	*upload
	attempt int
}

const keptOfUpload = 64 << 10 // bytes of a body that are kept to be sent again

var errUploadGone = errors.New("the origin closed the connection, and the request's body cannot be sent again")

func (u *upload) Read(p []byte) (int, error) { return u.read(p, 0) }

func (u *uploadAgain) Read(p []byte) (int, error) { return u.read(p, u.attempt) }

// Close ends the body if only that interrupts a reader, and otherwise leaves it for another attempt.
func (u *upload) Close() error {
	if u.interrupt == nil {
		return nil
	}
	u.mu.Lock()
	u.long = u.long || u.ended == nil
	u.mu.Unlock()
	return u.interrupt.Close()
}

// again returns the body from its beginning for another attempt, and ends the attempt before. It is the
// request's GetBody.
func (u *upload) again() (io.ReadCloser, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.long {
		return nil, errUploadGone
	}
	u.attempt++
	u.sent = 0
	return &uploadAgain{u, u.attempt}, nil
}

// read reads for an attempt. Transports may still read for one that has failed: what they get is kept
// for the next.
func (u *upload) read(p []byte, attempt int) (int, error) {
	u.reading.Lock()
	defer u.reading.Unlock()
	if n, err, ok := u.known(p, attempt); ok {
		return n, err
	}
	u.charge(false)
	n, err := u.body.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		u.failed.Store(bodyError(err))
	}
	u.charge(err == nil) // after the last byte the transport limits the wait for the header
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = err
	current := attempt == u.attempt
	u.long = u.long || len(u.kept)+n > keptOfUpload
	if !u.long || !current || len(u.kept) > 0 {
		u.kept = append(u.kept, p[:n]...)
	}
	if !current {
		return 0, errUploadGone
	}
	if u.sent += n; u.long {
		u.kept, u.sent = nil, 0
	}
	return n, err
}

// known returns what was read before, for an earlier attempt, or how the body ended. It isn't ok if
// the body must be read.
func (u *upload) known(p []byte, attempt int) (_ int, _ error, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case attempt != u.attempt:
		return 0, errUploadGone, true
	case u.sent < len(u.kept):
		n := copy(p, u.kept[u.sent:])
		u.sent += n
		return n, nil, true
	}
	return 0, u.ended, u.ended != nil
}

// complete reports whether the body was read to its end.
func (u *upload) complete() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended == io.EOF
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
