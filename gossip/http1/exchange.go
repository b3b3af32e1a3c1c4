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
	"net/textproto"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// errUnanswered is wrapped by the error of a connection that ended before the first byte of an answer: the server may
// have closed a kept one before the request came, or may have been started anew.
var errUnanswered = errors.New("the connection ended before the answer")

// An exchange is a request and its answer on a connection. It ends once: when the answer was read to its end, or
// was closed before.
type exchange struct {
	http.Response
	conn  *conn
	body  body
	up    *upload // nil = the request has no body
	ctx   context.Context
	stop  func() bool // ends the watch over the context, and reports whether that lives
	keeps bool        // the server keeps the connection
	ended atomic.Bool
}

// exchange sends a request and reads the header of its answer.
func (c *conn) exchange(r *http.Request) (*http.Response, error) {
	x := &exchange{conn: c, ctx: r.Context()}
	c.buffer()
	length := lengthOf(r)
	var room []byte
	if length == 0 {
		room = c.own[:0]
	}
	head, err := appendRequest(room, r, length)
	if err != nil {
		c.Close()
		closeBody(r)
		return nil, err
	}
	x.stop = context.AfterFunc(x.ctx, func() { c.Close() })
	if length == 0 {
		closeBody(r)
		c.await(c.SetDeadline) // a server may also read nothing
		_, err = c.Conn.Write(head)
	} else {
		x.up = newUpload(x, r, length)
		go x.up.send(head)
	}
	if err == nil {
		err = x.answer(r)
	} else {
		err = c.unanswered(err)
	}
	if err != nil {
		err = x.failed(err)
		x.end(false)
		return nil, err
	}
	return &x.Response, nil
}

// await limits how long the header may take from now on, by one of the connection's methods.
func (c *conn) await(set func(time.Time) error) {
	if c.t.HeaderTimeout > 0 {
		set(time.Now().Add(c.t.HeaderTimeout))
	}
}

// waited ends that.
func (c *conn) waited(set func(time.Time) error) {
	if c.t.HeaderTimeout > 0 {
		set(time.Time{})
	}
}

// unanswered returns the error of a connection that ended, or was too slow, before the first byte of an answer.
func (c *conn) unanswered(err error) error {
	if isTimeout(err) {
		return timeout("no header of an answer in time")
	}
	return fmt.Errorf("%w: %w", errUnanswered, err)
}

// answer reads the header of the answer, and what comes before it.
func (x *exchange) answer(r *http.Request) error {
	c := x.conn
	h, err := x.final(r)
	if x.up != nil {
		x.up.answered()
	} else {
		c.waited(c.SetDeadline)
	}
	if err != nil {
		return err
	}
	left, err := h.framing()
	if err != nil {
		return err
	}
	connection := h.fields["Connection"]
	x.keeps = !r.Close && !has(connection, "close") && (h.minor > 0 || has(connection, "keep-alive"))
	x.Response = http.Response{
		Status: h.text, StatusCode: h.status, Proto: [...]string{"HTTP/1.0", "HTTP/1.1"}[min(h.minor, 1)],
		ProtoMajor: 1, ProtoMinor: min(h.minor, 1),
		Header: h.fields, ContentLength: max(left, -1), Close: !x.keeps, Request: r, TLS: c.tls, Body: http.NoBody,
	}
	if h.status == http.StatusSwitchingProtocols {
		return x.switchTo()
	}
	if bodyless(r.Method, h.status) || left == 0 {
		if r.Method != http.MethodHead {
			x.ContentLength = 0
		}
		x.end(true)
		return nil
	}
	x.Body = &x.body
	x.body = body{x: x, left: left}
	if left == chunked {
		x.body.left, x.body.chunked = 0, true
		x.TransferEncoding = []string{"chunked"}
		x.announced()
	}
	return nil
}

// final reads headers up to that of the answer itself. Interim answers (RFC 9110 section 15.2) count with it.
func (x *exchange) final(r *http.Request) (head, error) {
	c, most := x.conn, cmp.Or(x.conn.t.MaxHeaderBytes, defaultHeader)
	var trace *httptrace.ClientTrace
	for first := true; ; first = false { // each round takes bytes of the limit
		h, n, err := c.readHead(most)
		switch {
		case err != nil && (first && c.to == 0 || isTimeout(err)):
			return h, c.unanswered(err)
		case err == io.EOF:
			return h, io.ErrUnexpectedEOF
		case err != nil:
			return h, err
		case h.status == http.StatusSwitchingProtocols && r.Header["Upgrade"] == nil:
			return h, malformed("RFC 9110 section 15.2.2: 101 to a request without Upgrade")
		case h.status >= 200 || h.status == http.StatusSwitchingProtocols:
			return h, nil
		}
		most -= n
		if h.status == http.StatusContinue {
			x.up.proceed(true)
		}
		if trace == nil {
			trace = cmp.Or(httptrace.ContextClientTrace(r.Context()), &httptrace.ClientTrace{})
		}
		if trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(h.status, textproto.MIMEHeader(h.fields)); err != nil {
				return h, err
			}
		}
	}
}

// announced sets the names of the trailers that will come (RFC 9110 section 6.6.2), without those that frame a message,
// which clients refuse (section 6.5.1).
func (x *exchange) announced() {
	lines := x.Header["Trailer"]
	delete(x.Header, "Trailer")
	for name := range rfc9111.Members(lines) {
		switch name = textproto.CanonicalMIMEHeaderKey(name); name {
		case "Content-Length", "Transfer-Encoding", "Trailer":
			continue
		}
		if x.Trailer == nil {
			x.Trailer = make(http.Header)
		}
		x.Trailer[name] = nil
	}
}

// failed returns why an exchange failed, if not for err.
func (x *exchange) failed(err error) error {
	if cause := x.up.broke(); cause != nil {
		return cause
	}
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return err
}

// end ends the exchange. If the answer was read to its end, the connection may be used again.
func (x *exchange) end(whole bool) {
	if x.ended.Swap(true) {
		return
	}
	c := x.conn
	alive, surplus := x.stop(), c.from < c.to
	if whole {
		c.release() // by the goroutine that read
	}
	switch {
	case !whole || !alive || !x.keeps:
		x.abandon()
	case surplus:
		c.t.untidy(c.host)
		x.abandon()
	case x.up == nil:
		c.t.keep(c)
	default:
		go func() { // the last bytes of the request may just have been sent
			if x.up.ends() {
				c.t.keep(c)
			} else {
				x.abandon()
			}
		}()
	}
}

// abandon closes the connection, and with it ends what is still being sent.
func (x *exchange) abandon() {
	x.conn.Close()
	x.up.interrupt()
}

// switchTo makes the connection that of another protocol (section 7.8 of RFC 9110). It is the caller's now.
func (x *exchange) switchTo() error {
	if !x.stop() {
		return context.Cause(x.ctx)
	}
	x.ended.Store(true)
	early := append([]byte(nil), x.conn.rest()...)
	x.Body = &switched{x.conn.handOver(), early}
	return nil
}

// A switched connection speaks another protocol. early has come with the answer.
type switched struct {
	net.Conn
	early []byte
}

func (s *switched) Read(p []byte) (int, error) {
	if len(s.early) > 0 {
		n := copy(p, s.early)
		s.early = s.early[n:]
		return n, nil
	}
	return s.Conn.Read(p)
}

// CloseWrite ends what is sent, if the connection can do that alone.
func (s *switched) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Conn.Close()
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}
