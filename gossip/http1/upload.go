package http1

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	mostPiece = 32 << 10              // of a body that is sent at once
	lastBytes = 50 * time.Millisecond // how long an answer waits for the end of its request, to keep the connection
)

// An upload sends a request with its body, in a goroutine of its own, since the answer may come before its end. Its
// methods but send may be called with nil.
type upload struct {
	x      *exchange
	r      *http.Request
	length int64
	expect chan bool     // has whether to send the body, or nil = at once
	over   chan struct{} // closed when nothing more is sent

	mu      sync.Mutex
	got     bool  // the header of the answer
	whole   bool  // all was sent
	body    error // of the request's body
	closing sync.Once
}

func newUpload(x *exchange, r *http.Request, length int64) *upload {
	u := &upload{x: x, r: r, length: length, over: make(chan struct{})}
	if httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue") {
		u.expect = make(chan bool, 1)
	}
	return u
}

// send sends the header, and then the body. If its length is known, the header goes with its first bytes.
func (u *upload) send(head []byte) {
	defer close(u.over)
	defer u.interrupt()
	if u.length == unknown || u.expect != nil {
		u.x.conn.await(u.x.conn.SetWriteDeadline)
		if u.write(head) != nil || !u.expected() {
			return
		}
		u.x.conn.waited(u.x.conn.SetWriteDeadline)
		head = nil
	}
	var err error
	if u.length == unknown {
		err = u.chunks()
	} else {
		err = u.exactly(head)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.whole = err == nil; u.whole && !u.got {
		u.x.conn.await(u.x.conn.SetReadDeadline)
	}
}

// expected waits until the server wants the body (RFC 9110 section 10.1.1), and reports whether it does.
func (u *upload) expected() bool {
	if u.expect == nil {
		return true
	}
	select {
	case wanted := <-u.expect:
		return wanted
	case <-time.After(expectTimeout):
		return true
	}
}

// exactly sends the body with its length, the first piece behind head.
func (u *upload) exactly(head []byte) error {
	begin := len(head)
	p := slices.Grow(head, int(min(u.length, mostPiece)))
	p = p[:cap(p)]
	for left := u.length; left > 0; { // each round waits for the body
		n, err := u.r.Body.Read(p[begin : begin+int(min(left, mostPiece))])
		if n > 0 {
			if err := u.write(p[:begin+n]); err != nil {
				return err
			}
			left, begin = left-int64(n), 0
		}
		if left > 0 && err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return u.broken(err)
		}
	}
	return nil
}

// chunks sends the body in chunks, and its trailers.
func (u *upload) chunks() error {
	const line = 10 // at most the size of a piece takes, with its CRLF
	p := make([]byte, line+mostPiece+2)
	for { // each round waits for the body
		n, err := u.r.Body.Read(p[line : line+mostPiece])
		if n > 0 {
			size := strconv.FormatInt(int64(n), 16) + "\r\n"
			from := line - len(size)
			copy(p[from:], size)
			if err := u.write(append(p[from:line+n], "\r\n"...)); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			end := []byte("0\r\n")
			for _, name := range slices.Sorted(maps.Keys(u.r.Trailer)) {
				for _, v := range u.r.Trailer[name] {
					if httpguts.ValidTrailerHeader(name) && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(v) {
						end = appendField(end, name, v)
					}
				}
			}
			return u.write(append(end, "\r\n"...))
		case err != nil:
			return u.broken(err)
		}
	}
}

// write writes to the server. If it fails, an answer may have come before, so that the connection stays for the
// goroutine that reads it.
func (u *upload) write(p []byte) error {
	_, err := u.x.conn.Conn.Write(p)
	if err != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		if !u.got {
			u.x.conn.await(u.x.conn.SetReadDeadline)
		}
	}
	return err
}

// broken notes that the request's body cannot be read: there is no request then.
func (u *upload) broken(err error) error {
	u.mu.Lock()
	u.body = err
	u.mu.Unlock()
	u.x.conn.Close()
	return err
}

// proceed says whether the body is wanted.
func (u *upload) proceed(wanted bool) {
	if u != nil && u.expect != nil {
		select {
		case u.expect <- wanted:
		default:
		}
	}
}

// answered notes that the header of the answer has come, or will not.
func (u *upload) answered() {
	u.proceed(false)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.got = true
	u.x.conn.waited(u.x.conn.SetReadDeadline)
}

// broke returns the error of the request's body.
func (u *upload) broke() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.body
}

// ends reports whether all was sent, or is in a moment.
func (u *upload) ends() bool {
	select {
	case <-u.over:
	case <-time.After(lastBytes):
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.whole
}

// interrupt closes the request's body, which ends a read of it.
func (u *upload) interrupt() {
	if u != nil {
		u.closing.Do(func() { u.r.Body.Close() })
	}
}
