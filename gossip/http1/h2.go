package http1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// multiplexed is the client of HTTP/2 of a host. It is guarded by the pool's mutex.
type multiplexed struct {
	transport *http.Transport // nil = the host is not known to speak it
	since     time.Time
	addr      netip.Addr // of its last connection
}

// end lets the connections end when their requests have.
func (m *multiplexed) end() {
	if m.transport != nil {
		go m.transport.CloseIdleConnections() // those that are busy now it closes once they are idle for a while
	}
	*m = multiplexed{}
}

func (c *conn) multiplexes() bool { return c.tls != nil && c.tls.NegotiatedProtocol == "h2" }

// multiplexes reports whether the host has spoken HTTP/2. After maxAge it is asked anew.
func (h *host) multiplexes(maxAge time.Duration) bool {
	t := h.pool
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.h2.transport != nil && time.Since(h.h2.since) > cmp.Or(maxAge, defaultAge) {
		h.h2.end()
	}
	return h.h2.transport != nil
}

var errHTTP1 = errors.New("http1: the server speaks HTTP/1 only")

// multiplex sends a request by HTTP/2.
func (t *Transport) multiplex(h *host, r *http.Request) (*http.Response, error) {
	resp, err := limited(t.over2(h), r)
	if err != nil && (errors.Is(err, errHTTP1) || brokeOff(err) || notBegun(err)) {
		err = fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return resp, err
}

// brokeOff reports whether the connection ended before the answer.
func brokeOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// notBegun reports whether the server has not begun a request, since it goes away or refuses it (RFC 9113 section 8.7),
// or its connection was lost before anything was written. net/http says so in words only.
func notBegun(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"graceful shutdown GOAWAY", "REFUSED_STREAM; received from peer",
		"cannot rewind body after connection loss"}, func(s string) bool { return strings.Contains(err.Error(), s) })
}

// over2 returns the client of HTTP/2 of a host.
func (t *Transport) over2(h *host) *http.Transport {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if h.h2.transport != nil {
		return h.h2.transport
	}
	to := &http.Transport{
		DisableCompression: true, IdleConnTimeout: idleTimeout, ExpectContinueTimeout: expectTimeout,
		ResponseHeaderTimeout: t.HeaderTimeout, MaxResponseHeaderBytes: int64(cmp.Or(t.MaxHeaderBytes, defaultHeader)),
		Protocols: new(http.Protocols),
	}
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := t.connect(ctx, h, false)
		if err != nil {
			return nil, err
		}
		t.pool.mu.Lock()
		if h.scheme == "https" && !c.multiplexes() {
			h.h2.end()
			t.pool.mu.Unlock()
			t.keep(c)
			return nil, errHTTP1
		}
		h.h2.addr = c.addr
		t.pool.mu.Unlock()
		return c.handOver(), nil
	}
	if h.scheme == "https" {
		to.Protocols.SetHTTP2(true)
		to.DialTLSContext = connect
	} else {
		to.Protocols.SetUnencryptedHTTP2(true)
		to.DialContext = connect
	}
	h.h2 = multiplexed{transport: to, since: time.Now()}
	return to
}

// connectionsOfOne is the number of connections on which one request without a body is sent over HTTP/2 before net/http
// is kept from sending it on another.
const connectionsOfOne = 3

var errRefused = errors.New("the origin refused the request on several connections")

// limited sends a request once. net/http sends one that it can repeat on a new connection each time that the server
// goes away or calls the request malformed, at once and without end. One with a body it repeats only by GetBody, which
// is left out here. Another gets an empty body after some connections: then the transport says what the server said.
func limited(t *http.Transport, r *http.Request) (*http.Response, error) {
	out := *r
	out.GetBody = nil
	if r.Body != nil && r.Body != http.NoBody {
		return t.RoundTrip(&out)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var connections atomic.Int32
	resp, err := t.RoundTrip(out.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			if connections.Add(1) > connectionsOfOne {
				cancel(errRefused)
			}
		}})))
	if err == nil || context.Cause(ctx) != errRefused {
		return resp, err
	}
	out.Body, out.ContentLength = io.NopCloser(strings.NewReader("")), -1
	return t.RoundTrip(&out)
}
