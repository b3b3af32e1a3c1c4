//go:build linux

package conn

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a client of HTTP/1 sends behind a request takes nothing from the answer to that: neither a request that is malformed, nor one
// whose header is too long, with whatever comes behind it. The client begins to read when the server has done with it.
func TestAnswersOutliveWhatComesBehind(t *testing.T) {
	const size = 1 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := NewGate(Limits{})
	closed := make(chan net.Conn, 10)
	server := &http.Server{ConnContext: Context, MaxHeaderBytes: 4 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("x", size)) }),
		ConnState: func(c net.Conn, s http.ConnState) {
			Idle(c, s == http.StateNew || s == http.StateIdle)
			if s == http.StateClosed {
				closed <- c
			}
		}}
	go server.Serve(Listen(l, time.Minute, gate))
	defer server.Close()
	const good = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, behind := range map[string]string{
		"no request":           "\x00\x01\x02 nonsense\r\n\r\n" + strings.Repeat("more of it\r\n", 2000),
		"a long header":        "GET /b HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 100_000) + "\r\n\r\n",
		"no host":              "GET /b HTTP/1.1\r\n\r\n" + strings.Repeat("GET /c HTTP/1.1\r\n\r\n", 1000),
		"a request that ended": "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + strings.Repeat(good, 1000),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.(*net.TCPConn).SetReadBuffer(64 << 10)
			go io.WriteString(c, good+behind)
			<-closed
			r := bufio.NewReader(c)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
				t.Errorf("%d bytes of %d of the answer to the good request came, %v", n, size, err)
			}
		})
	}
}

// A connection that lingers gives way to another at once, and one whose client has its answer does not stay.
func TestLingeringGivesWay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := NewGate(Limits{Conns: 1})
	server := &http.Server{ConnContext: Context, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat("x", 1<<20)) }),
		ConnState: func(c net.Conn, s http.ConnState) { Idle(c, s == http.StateNew || s == http.StateIdle) }}
	go server.Serve(Listen(l, time.Minute, gate))
	defer server.Close()
	until := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within 20 s: %s", what)
			}
		}
	}
	ask := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.(*net.TCPConn).SetReadBuffer(64 << 10)
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		return c
	}
	lingers := func() (n int) {
		gate.mu.Lock()
		defer gate.mu.Unlock()
		for _, c := range gate.conns.list {
			if c.pass.lingering.Load() {
				n++
			}
		}
		return n
	}
	first := ask()
	defer first.Close()
	until("the first one lingers", func() bool { return lingers() == 1 })
	second := ask()
	defer second.Close()
	if b, err := io.ReadAll(second); err != nil || len(b) < 1<<20 {
		t.Errorf("the second got %d bytes, %v", len(b), err)
	}
	until("no connection is left", func() bool { open, _, _ := gate.Stats(); return open == 0 })
	if _, dropped, refused := gate.Stats(); dropped != 1 || refused != 0 {
		t.Errorf("%d dropped, %d refused, want 1 and 0", dropped, refused)
	}
}
