package conn

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// quickServer serves plain requests at once where it can, and others by a server of net/http. An answer says who gave
// it, and to what.
type quickServer struct {
	*http.Server
	t     *testing.T
	dial  func() (net.Conn, error)
	gate  *Gate
	long  int                   // the length of /long
	waits func(context.Context) // called for /waits
	not   atomic.Bool           // serve nothing at once
	went  atomic.Int64          // requests that were served at once
	read  atomic.Int64          // bytes of clients
}

func newQuickServer(t *testing.T, limits Limits, tune func(*http.Server)) *quickServer {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &quickServer{t: t, gate: NewGate(limits), long: 30 << 20}
	s.dial = func() (net.Conn, error) { return net.Dial("tcp", inner.Addr().String()) }
	s.serve(counts{inner, &s.read}, tune)
	return s
}

// counts counts the bytes that come on the connections that it accepts.
type counts struct {
	net.Listener
	n *atomic.Int64
}

func (l counts) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &counted{c.(*net.TCPConn), l.n}, nil
}

type counted struct {
	*net.TCPConn
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// pipes accepts the connections that are put into it, until it is closed.
type pipes chan net.Conn

func (l pipes) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipes) Close() error   { close(l); return nil }
func (l pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve serves what a listener accepts until the test ends.
func (s *quickServer) serve(inner net.Listener, tune func(*http.Server)) {
	atOnce := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.went.Add(1)
		body := "at once " + r.URL.Path
		switch r.URL.Path {
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/long":
			body = strings.Repeat("x", s.long)
		case "/hit":
		case "/waits":
			s.waits(r.Context())
			io.WriteString(w, body)
			return
		default:
			io.WriteString(w, body)
			return
		}
		c := Of(r.Context())
		head := fmt.Appendf(c.Buffer(), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body))
		if _, err := c.Answer(head, bytes.NewBufferString(body)); err != nil {
			panic(http.ErrAbortHandler)
		}
	})
	s.Server = &http.Server{
		Handler: s.gate.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "server %s %s", r.URL.Path, b)
		})),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			ctx = Context(ctx, c)
			Quickly(ctx, atOnce, func() bool { return !s.not.Load() })
			return ctx
		},
		ConnState: func(c net.Conn, s http.ConnState) { Idle(c, s == http.StateNew || s == http.StateIdle) },
	}
	s.Server.Protocols = new(http.Protocols)
	s.Server.Protocols.SetHTTP1(true)
	s.Server.Protocols.SetUnencryptedHTTP2(true) // which reads 14 bytes first
	if tune != nil {
		tune(s.Server)
	}
	go s.Serve(Listen(inner, time.Minute, s.gate))
	s.t.Cleanup(func() { s.Close() })
}

// until waits for what the server does after its client has the answer, or before.
func (s *quickServer) until(what string, ok func() bool) {
	s.t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			s.t.Fatalf("after 20 s still not: %s", what)
		}
	}
}

// connect returns a connection to s that the server knows, and on which the next byte is the first of a request: the
// server reads one while it answers the request before, if that comes early.
func (s *quickServer) connect() (net.Conn, *bufio.Reader) {
	s.t.Helper()
	c, err := s.dial()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	for range 1000 {
		io.WriteString(c, get("/hit"))
		switch got := answered(in); got {
		case "at once /hit":
			return c, in
		case "server /hit ":
		default:
			s.t.Fatalf("the first answer is %q", got)
		}
	}
	s.t.Fatal("nothing is answered at once")
	return nil, nil
}

// forServer is a request that is not plain.
func forServer(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: x\r\nPragma: a\r\n\r\n"
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// answered reads an answer.
func answered(in *bufio.Reader) string {
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return string(body)
}
