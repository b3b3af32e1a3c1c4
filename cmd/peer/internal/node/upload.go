package node

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// withBodyDeadline ends requests whose clients send no byte of the body for that time,
// like nginx's client_body_timeout.
func withBodyDeadline(h http.Handler, pauseNow func() time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			h.ServeHTTP(w, r)
			return
		}
		pause := pauseNow()
		b := &timedBody{ReadCloser: r.Body, set: http.NewResponseController(w).SetReadDeadline, pause: pause}
		r.Body = b
		b.deadline(false) // also for the server, which reads the rest of the body after the handler
		defer b.end()
		h.ServeHTTP(w, r)
	})
}

// A timedBody is a request's body with a deadline for each read.
type timedBody struct {
	io.ReadCloser
	set   func(time.Time) error // the connection's deadline for reads
	pause time.Duration

	mu    sync.Mutex
	whole bool // it was read to its end: there is no deadline for the next request on the connection
	ended bool // the handler has returned: the server uses the connection again
}

// Read implements [io.Reader].
func (u *timedBody) Read(p []byte) (int, error) {
	u.deadline(false)
	n, err := u.ReadCloser.Read(p)
	if err == io.EOF {
		u.deadline(true)
	}
	return n, err
}

// deadline sets the deadline for the next read, or none after the body's end.
func (u *timedBody) deadline(whole bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.whole = u.whole || whole
	switch {
	case u.ended:
	case u.whole:
		u.set(time.Time{})
	default:
		u.set(time.Now().Add(u.pause))
	}
}

// end is called when the handler returns. The server then reads the rest of the body, for
// one pause at most.
func (u *timedBody) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if !u.whole {
		u.set(time.Now().Add(u.pause))
	}
}
