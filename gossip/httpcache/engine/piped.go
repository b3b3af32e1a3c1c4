package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"runtime/debug"
	"strconv"
	"strings"
)

// A Piped answer is an [http.ResponseWriter] whose answer is read as an [http.Response]: so what answers
// requests, such as a handler or the cache, can be their origin.
type Piped struct {
	header  http.Header
	sent    http.Header   // header when the status was written
	status  int           // 0 = none was written
	begun   chan struct{} // closed with the first byte or Flush, or at the end: sent and status are set then
	began   bool          // begun is closed
	body    *io.PipeWriter
	empty   bool                                  // the answer has no body, whatever is written
	Sniff   bool                                  // the type of the body is guessed if no field says it, as a server does
	Interim func(int, textproto.MIMEHeader) error // gets 1xx responses; nil = nobody
}

// Receive returns what serve writes to p as the response to r. serve runs in a goroutine of its own until it
// returns, which may be after the response was closed. Its error, or its panic as a [Panicked], is that of
// Receive or, once the answer has begun, of the body. The end of r's context ends both.
func (p *Piped) Receive(r *http.Request, serve func() error) (*http.Response, error) {
	var body *io.PipeReader
	body, p.body = io.Pipe()
	p.header, p.begun, p.empty = http.Header{}, make(chan struct{}), r.Method == http.MethodHead
	failed := make(chan error, 1)
	stop := context.AfterFunc(r.Context(), func() { p.body.CloseWithError(context.Cause(r.Context())) })
	go Guard(serve, func(err error) {
		stop()
		switch {
		case err == nil:
			p.Flush()
		case !p.began:
			failed <- err
		}
		p.body.CloseWithError(err)
	})
	select {
	case <-p.begun:
	case err := <-failed:
		return nil, err
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	resp := &http.Response{Status: strconv.Itoa(p.status) + " " + http.StatusText(p.status), StatusCode: p.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: p.sent, ContentLength: -1, Body: body, Request: r}
	if n, err := strconv.ParseInt(p.sent.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = n
	}
	return resp, nil
}

// Header implements [http.ResponseWriter].
func (p *Piped) Header() http.Header { return p.header }

// WriteHeader implements [http.ResponseWriter].
func (p *Piped) WriteHeader(status int) {
	switch {
	case p.status != 0:
	case status < 200:
		if p.Interim != nil {
			_ = p.Interim(status, textproto.MIMEHeader(p.header)) // the answer itself will show the error
		}
	default:
		p.status, p.sent, p.empty = status, p.header.Clone(), p.empty || noBody(status)
		maps.DeleteFunc(p.sent, func(k string, _ []string) bool { return strings.HasPrefix(k, http.TrailerPrefix) })
	}
}

// Write implements [http.ResponseWriter].
func (p *Piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	_, said := p.sent["Content-Type"]
	if !p.began && p.Sniff && len(b) > 0 && !p.empty && !said && p.sent["Content-Encoding"] == nil {
		p.sent["Content-Type"] = []string{http.DetectContentType(b)}
	}
	p.Flush()
	if p.empty {
		return len(b), nil
	}
	return p.body.Write(b)
}

// Flush implements [http.Flusher]: it begins the answer.
func (p *Piped) Flush() {
	p.WriteHeader(http.StatusOK)
	if !p.began {
		p.began = true
		close(p.begun)
	}
}

// errExit is the error of a function that ended its goroutine.
var errExit = errors.New("cache: a handler or a load called runtime.Goexit")

// A Panicked error carries a panic to the goroutines that wait for its result.
type Panicked struct {
	Value any
	stack []byte
}

func (p *Panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.stack) }

// Guard calls f, and then ended with its error, also if f panics or ends the goroutine.
func Guard(f func() error, ended func(error)) {
	err := errExit
	defer func() {
		if v := recover(); v != nil {
			err = &Panicked{v, debug.Stack()}
		}
		ended(err)
	}()
	err = f()
}

// Repanic continues the panic that err carries, if it carries one, in this goroutine.
func Repanic(err error) {
	if p := (*Panicked)(nil); errors.As(err, &p) {
		if p.Value == http.ErrAbortHandler {
			panic(p.Value)
		}
		panic(p)
	}
}
