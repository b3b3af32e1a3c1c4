package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// brokeOff reports whether the connection ended before the answer. The origin may have restarted, or
// have closed an idle connection at that moment; net/http says the latter in words only.
func brokeOff(err error) bool {
	text := err.Error()
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.HasSuffix(text, "server closed idle connection") || strings.Contains(text, "graceful shutdown GOAWAY")
}

// again returns a request to be sent a second time. It isn't ok if nobody waits for the answer any
// more, if the method is not idempotent (RFC 9110 section 9.2.2), or if the body is gone.
func again(r *http.Request) (_ *http.Request, ok bool) {
	if r.Context().Err() != nil || !rfc9111.IsSafe(r.Method) && r.Method != http.MethodPut && r.Method != http.MethodDelete {
		return nil, false
	}
	if r.Body == nil || r.Body == http.NoBody {
		return r, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	out := *r
	out.Body = body
	return &out, true
}

// connectionsOfOne is the number of connections on which one request without a body is sent over
// HTTP/2 before net/http is kept from sending it on another.
const connectionsOfOne = 3

var errRefused = errors.New("the origin refused the request on several connections")

// send sends a request once. Over HTTP/2, net/http sends one that it can repeat on a new connection
// each time that the origin goes away or calls the request malformed, at once and without end. One
// with a body it repeats only by GetBody, which is left out here. Another gets an empty body after
// some connections: then the transport says what the origin said.
func (o *origins) send(r *http.Request) (*http.Response, error) {
	multiplexed := r.URL.Scheme == "https" || o.clear
	if !multiplexed && r.GetBody == nil {
		return o.RoundTripper.RoundTrip(r)
	}
	out := *r
	out.GetBody = nil
	if !multiplexed || r.Body != nil && r.Body != http.NoBody {
		return o.RoundTripper.RoundTrip(&out)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var connections atomic.Int32
	resp, err := o.RoundTripper.RoundTrip(out.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if connections.Add(1) > connectionsOfOne {
			cancel(errRefused)
		}
	}})))
	if err == nil || context.Cause(ctx) != errRefused {
		return resp, err
	}
	out.Body, out.ContentLength = io.NopCloser(strings.NewReader("")), -1
	return o.RoundTripper.RoundTrip(&out)
}
