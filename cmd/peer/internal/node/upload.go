package node

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
)

// withBodyDeadline gives up a client that sends nothing of a request's body for the
// time pause, between two reads: the same as nginx's client_body_timeout. Errors of
// reading a body are known as the client's by their type.
func withBodyDeadline(h http.Handler, pause time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			h.ServeHTTP(w, r)
			return
		}
		b := &upload{ReadCloser: r.Body, set: http.NewResponseController(w).SetReadDeadline, pause: pause}
		r.Body = b
		b.deadline(false) // also for the server, which reads what a handler leaves
		defer b.end()
		h.ServeHTTP(w, r)
	})
}

// upload is a request's body that must not pause for long.
type upload struct {
	io.ReadCloser
	set   func(time.Time) error // the connection's deadline for reads
	pause time.Duration

	mu     sync.Mutex
	failed *cache.RequestBodyError
	whole  bool // it has been read to its end: what comes next on the connection may take its time
	ended  bool // the handler has: the connection is the server's again
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (int, error) {
	u.deadline(false)
	n, err := u.ReadCloser.Read(p)
	if err == io.EOF {
		u.deadline(true)
	}
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		err = u.fail(err)
	}
	return n, err
}

func (u *upload) fail(err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.failed = &cache.RequestBodyError{Err: err}
	return u.failed
}

// Failed returns the last error of reading the body; nil if there was none.
func (u *upload) Failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil {
		return nil
	}
	return u.failed
}

// deadline sets that for the next read, or none behind the body's end.
func (u *upload) deadline(whole bool) {
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

// end leaves the connection to the server, which reads what is left of the body for
// as long as one pause.
func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if !u.whole {
		u.set(time.Now().Add(u.pause))
	}
}
