package http1

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// said is a connection on which these bytes come, in pieces, whatever is sent.
type said struct {
	net.Conn
	rest  []byte
	piece int
}

func (s *said) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.piece, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}
func (s *said) Write(p []byte) (int, error)      { return len(p), nil }
func (s *said) Close() error                     { return nil }
func (s *said) SetDeadline(time.Time) error      { return nil }
func (s *said) SetReadDeadline(time.Time) error  { return nil }
func (s *said) SetWriteDeadline(time.Time) error { return nil }
func (s *said) Peek() (int, error)               { return len(s.rest), nil }

// FuzzAnswer reads any bytes as an answer. Whatever is taken for one net/http must take for the same, and what comes behind
// it is never kept. Where the pieces begin makes no difference.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 204 No Content\r\n\r\nx", "HTTP/1.0 200 OK\r\n\r\nhello",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n00\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length : 5\r\n x\r\n\r\n",
	} {
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, answer []byte, head bool) {
		method := map[bool]string{false: "GET", true: "HEAD"}[head]
		read := func(piece int) (resp *http.Response, body string, idle, unread int, err error) {
			c, dialled := &said{rest: answer, piece: piece}, 0
			to := &Transport{MaxHeaderBytes: 32 << 10, Dial: func(context.Context, string, string) (net.Conn, error) {
				if dialled++; dialled > 1 {
					return nil, io.ErrClosedPipe
				}
				return c, nil
			}}
			resp, body, err = get(to, method, "http://o.test/")
			return resp, body, to.pool.idle, len(c.rest), err
		}
		resp, body, idle, unread, err := read(len(answer) + 1)
		if again, same, _, _, err2 := read(3); (err == nil) != (err2 == nil) || body != same && err == nil ||
			resp != nil && again != nil && resp.StatusCode != again.StatusCode {
			t.Fatalf("at once %q, %v; in pieces %q, %v", body, err, same, err2)
		}
		if err != nil {
			if idle != 0 {
				t.Fatal("the connection of a broken answer is kept")
			}
			return
		}
		in := bufio.NewReader(bytes.NewReader(answer))
		r, _ := http.NewRequest(method, "http://o.test/", nil)
		theirs, err := http.ReadResponse(in, r)
		for err == nil && theirs.StatusCode < 200 && theirs.StatusCode != 101 {
			theirs, err = http.ReadResponse(in, r)
		}
		if err != nil {
			t.Fatalf("%v, and here it is %v %q", err, resp, body)
		}
		b, err := io.ReadAll(theirs.Body)
		if err != nil || string(b) != body || theirs.StatusCode != resp.StatusCode || theirs.ContentLength != resp.ContentLength {
			t.Fatalf("net/http: %d %q of %d, %v; here %d %q of %d", theirs.StatusCode, b, theirs.ContentLength, err, resp.StatusCode, body, resp.ContentLength)
		}
		for name, lines := range theirs.Header {
			if name != "Transfer-Encoding" && name != "Connection" && len(resp.Header[name]) != len(lines) {
				t.Fatalf("%s is %q, in net/http %q", name, resp.Header[name], lines)
			}
		}
		if idle == 1 && in.Buffered() > 0 && unread == 0 { // what was not read yet is seen before the next request
			t.Fatalf("%d bytes are left behind, and the connection is kept", in.Buffered())
		}
	})
}
