package engine

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

// shortUpload is the length in bytes up to which the body of a request is kept, so that it can be sent again if the
// origin closes the connection.
const shortUpload = 64 << 10

var errUploadGone = errors.New("the origin closed the connection, and the request's body cannot be sent again")

// An upload is the body of a client's request on its way to the origin. The client's delays and
// errors do not count against the origin. The origin's delays are limited for each upload, not for
// the connection: many requests may share that (HTTP/2). While it is short it can be sent again from
// its beginning.
type upload struct {
	body      io.Reader
	interrupt io.Closer                   // what Close closes; nil = nothing
	failed    atomic.Pointer[clientError] // how reading it failed
	complete  atomic.Bool                 // it was read to its end

	reading chan struct{} // has an element while body is read, and what follows is changed
	kept    []byte        // what was read, until that is too long
	long    bool          // it is
	resent  bool          // no more is read for the first attempt

	mu    sync.Mutex
	clock *time.Timer // runs while the origin has to read the bytes that came; nil = it has answered
	limit time.Duration
}

func (u *upload) Read(p []byte) (int, error) {
	u.reading <- struct{}{}
	defer func() { <-u.reading }()
	if u.resent {
		return 0, errUploadGone
	}
	u.charge(false)
	n, err := u.body.Read(p)
	u.keep(p[:n], err)
	u.charge(err == nil) // after the last byte the transport limits the wait for the header
	return n, err
}

// whole reports whether the body was read to its end. The server of HTTP/1 ends a request's context within the read
// that finds the body broken, and after the one that finds its end, perhaps before that has returned: so whole waits for
// a read that is under way. It waits for a second only, since the context may have ended for another reason.
func (u *upload) whole() bool {
	select {
	case u.reading <- struct{}{}:
		<-u.reading
	case <-time.After(stallTime):
	}
	return u.complete.Load()
}

// keep notes what was read.
func (u *upload) keep(p []byte, err error) {
	switch {
	case err == io.EOF:
		u.complete.Store(true)
	case err != nil && !errors.Is(err, http.ErrBodyReadAfterClose):
		u.failed.Store(bodyError(err))
	}
	if u.long = u.long || len(u.kept)+len(p) > shortUpload; u.long {
		u.kept = nil
	} else {
		u.kept = append(u.kept, p...)
	}
}

// rewind returns the body from its beginning, once the client has sent all of it. It is the request's GetBody.
func (u *upload) rewind() (io.ReadCloser, error) {
	u.reading <- struct{}{}
	defer func() { <-u.reading }()
	for u.resent = true; !u.complete.Load() && !u.long; {
		p := make([]byte, 4<<10)
		n, err := u.body.Read(p)
		if u.keep(p[:n], err); err != nil && err != io.EOF {
			return nil, err
		}
	}
	if u.long {
		return nil, errUploadGone
	}
	return io.NopCloser(bytes.NewReader(u.kept)), nil
}

// Close ends the body if only that interrupts a reader.
func (u *upload) Close() error {
	if u.interrupt == nil {
		return nil
	}
	return u.interrupt.Close()
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
