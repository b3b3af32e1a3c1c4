package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A script is a server that answers each request on a connection by what it says for its path, as it stands.
type script struct {
	net.Listener
	mu    sync.Mutex
	conns int
	asked []string // the request lines
}

func newScript(t testing.TB, answer func(path string, to net.Conn)) *script {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					s.mu.Lock()
					s.asked = append(s.asked, r.Method+" "+r.RequestURI)
					s.mu.Unlock()
					answer(r.URL.Path, c)
				}
			}()
		}
	}()
	return s
}

func (s *script) url(path string) string { return "http://" + s.Addr().String() + path }

func (s *script) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

func get(t *Transport, method, url string) (*http.Response, string, error) {
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		return nil, "", err
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

// TestAnswers checks what is a message, and what is refused.
func TestAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct {
		name, answer string
		want         string // the body, or "refused", or "cut"
		status       int    // 0 = 200
		kept         bool   // the connection
	}{
		{"length", ok + "Content-Length: 5\r\n\r\nhello", "hello", 0, true},
		{"nothing", ok + "Content-Length: 0\r\n\r\n", "", 0, true},
		{"to the end", ok + "\r\nhello", "hello", 0, false},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "", 0, true},
		{"chunked", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", 0, true},
		{"chunks", ok + "Transfer-Encoding: Chunked\r\n\r\n2;a=b\r\nhe\r\n003 \r\nllo\r\n0;last\r\nX: y\r\n\r\n", "hello", 0, true},
		{"chunks of a byte", ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;a=b\r\nx\r\n", 5000) + "0\r\n\r\n", strings.Repeat("x", 5000), 0, true},
		{"extensions as long as the data", ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("3e8;"+strings.Repeat("e", 1000)+"\r\n"+strings.Repeat("x", 1000)+"\r\n", 50) + "0\r\n\r\n", strings.Repeat("x", 50_000), 0, true},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 0, false},
		{"HTTP/1.0 keeps", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\nhello", "hello", 0, true},
		{"closes", ok + "Content-Length: 5\r\nConnection: x, Close\r\n\r\nhello", "hello", 0, false},
		{"interim", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nhello", "hello", 0, true},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", "", 204, true},
		{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", 304, true},
		{"obs-text", ok + "X: \xe4\r\nContent-Length: 0\r\n\r\n", "", 0, true},

		{"behind a length", ok + "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n", "hello", 0, false},
		{"behind nothing", ok + "Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n", "", 0, false},
		{"behind the last chunk", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1", "", 0, false},
		{"behind 204", "HTTP/1.1 204 No Content\r\n\r\nhello", "", 204, false},
		{"behind 304", "HTTP/1.1 304 Not Modified\r\n\r\nhello", "", 304, false},

		{"blank before the colon", ok + "Cache-Control : private\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"tab before the colon", ok + "X\t: y\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"no colon", ok + "private\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"no name", ok + ": private\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"folded", ok + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"LF alone", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", "refused", 0, false},
		{"LF within", ok + "X: y\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"CR within", ok + "X: y\rZ: 1\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"NUL", ok + "X: y\x00\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"two lengths", ok + "Content-Length: 5\r\nContent-Length: 4\r\n\r\nhello", "refused", 0, false},
		{"a length twice", ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "refused", 0, false},
		{"a list of lengths", ok + "Content-Length: 5, 5\r\n\r\nhello", "refused", 0, false},
		{"a length with a sign", ok + "Content-Length: +5\r\n\r\nhello", "refused", 0, false},
		{"a negative length", ok + "Content-Length: -5\r\n\r\nhello", "refused", 0, false},
		{"a length of 20 digits", ok + "Content-Length: 00000000000000000005\r\n\r\nhello", "refused", 0, false},
		{"no length in its field", ok + "Content-Length: \r\n\r\nhello", "refused", 0, false},
		{"length with chunked", ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "refused", 0, false},
		{"chunked twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "refused", 0, false},
		{"another coding", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "refused", 0, false},
		{"identity", ok + "Transfer-Encoding: identity\r\n\r\n", "refused", 0, false},
		{"chunked by HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "refused", 0, false},
		{"HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"HTTP/0.9", "<html>hello\r\n\r\n", "refused", 0, false},
		{"another protocol", "SSH-2.0-OpenSSH\r\n\r\n", "refused", 0, false},
		{"an empty line first", "\r\n" + ok + "Content-Length: 0\r\n\r\n", "refused", 0, false},
		{"status 099", "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"status 600", "HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"status 20", "HTTP/1.1 20 X\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"status 2000", "HTTP/1.1 2000 X\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"status 2x0", "HTTP/1.1 2x0 X\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},
		{"101 unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "refused", 0, false},
		{"a long header", ok + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 300) + "Content-Length: 0\r\n\r\n", "refused", 0, false},
		{"endless interim answers", strings.Repeat("HTTP/1.1 102 Processing\r\nX: "+strings.Repeat("y", 1000)+"\r\n\r\n", 300), "refused", 0, false},
		{"control character in the reason", "HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n", "refused", 0, false},

		{"short", ok + "Content-Length: 9\r\n\r\nhello", "cut", 0, false},
		{"no last chunk", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "cut", 0, false},
		{"chunk size with a sign", ok + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"chunk size 0x5", ok + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"chunk size 5_0", ok + "Transfer-Encoding: chunked\r\n\r\n0_5\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"a blank before the chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"no chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"huge chunk size", ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"chunk size that overflows", ok + "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"LF after the chunk size", ok + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"LF after the chunk", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", "cut", 0, false},
		{"chunk longer than its size", ok + "Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"control character in an extension", ok + "Transfer-Encoding: chunked\r\n\r\n5;\x01\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"long extension", ok + "Transfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("x", 5000) + "\r\nhello\r\n0\r\n\r\n", "cut", 0, false},
		{"extensions longer than the data", ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 3000)+"\r\nx\r\n", 20) + "0\r\n\r\n", "cut", 0, false},
		{"long trailers", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 20) + "\r\n", "cut", 0, false},
		{"a trailer that is none", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX : y\r\n\r\n", "cut", 0, false},
	} {
		for _, pieces := range []int{1 << 20, 1, 7} {
			if pieces < 1<<20 && len(tt.answer) > 10_000 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", tt.name, pieces), func(t *testing.T) {
				t.Parallel()
				said := make(chan bool)
				s := newScript(t, func(path string, to net.Conn) {
					if path != "/" {
						io.WriteString(to, ok+"Content-Length: 4\r\n\r\nnext")
						return
					}
					defer close(said)
					for p := tt.answer; p != ""; { // each round sends a byte
						n := min(pieces, len(p))
						if _, err := io.WriteString(to, p[:n]); err != nil {
							return
						}
						p = p[n:]
					}
					if tt.want == "cut" || tt.name == "to the end" {
						to.(*net.TCPConn).CloseWrite()
					}
				})
				client := &Transport{HeaderTimeout: 10 * time.Second}
				defer client.CloseIdleConnections()
				resp, body, err := get(client, "GET", s.url("/"))
				switch {
				case tt.want == "refused":
					if !errors.Is(err, ErrMalformed) || resp != nil {
						t.Fatalf("answer %q: %v, want it refused", tt.answer[:min(100, len(tt.answer))], err)
					}
				case tt.want == "cut":
					if err == nil {
						t.Fatalf("answer %q: body %q, want it cut", tt.answer, body)
					}
				case err != nil || body != tt.want || resp.StatusCode != max(tt.status, 200):
					t.Fatalf("answer %q: %v %q %v, want %q", tt.answer, resp, body, err, tt.want)
				}
				<-said // nobody can tell what comes later from the next answer
				time.Sleep(time.Millisecond)
				if resp, body, err := get(client, "GET", s.url("/next")); err != nil || body != "next" {
					t.Fatalf("the next answer: %v %q %v", resp, body, err)
				}
				if n := s.connections(); (n == 1) != tt.kept {
					t.Errorf("%d connections, want one only if it is kept: %v", n, tt.kept)
				}
			})
		}
	}
}

// TestAnnouncedTrailers checks that trailers which frame messages are not announced.
func TestAnnouncedTrailers(t *testing.T) {
	s := newScript(t, func(_ string, to net.Conn) {
		io.WriteString(to, "HTTP/1.1 200 OK\r\nTrailer: X-Sum, content-length, Trailer\r\nTrailer: Transfer-Encoding\r\n"+
			"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n\r\n")
	})
	tr := &Transport{}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequest("GET", s.url("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, ok := resp.Trailer["X-Sum"]; !ok || len(resp.Trailer) != 1 {
		t.Errorf("announced %v, want X-Sum alone: the others frame messages", resp.Trailer)
	}
}

// TestCancel checks that a request ends with its context, in each of its phases, for its cause.
func TestCancel(t *testing.T) {
	phase := make(chan string, 1)
	s := newScript(t, func(path string, to net.Conn) {
		if path == "/body" {
			io.WriteString(to, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel")
		}
		phase <- path
	})
	enough := errors.New("enough")
	for _, path := range []string{"/before", "/header", "/body"} {
		client := &Transport{}
		ctx, cancel := context.WithCancelCause(t.Context())
		if path == "/before" {
			cancel(enough)
		} else {
			go func() { <-phase; cancel(enough) }()
		}
		r, _ := http.NewRequestWithContext(ctx, "GET", s.url(path), nil)
		resp, err := client.RoundTrip(r)
		if path == "/body" && err == nil {
			_, err = io.ReadAll(resp.Body)
		}
		if err != enough {
			t.Errorf("RoundTrip(%s) = %v, want the cause", path, err)
		}
	}
}
