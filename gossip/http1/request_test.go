package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// TestRequestBytes checks what is sent for a request, to the byte.
func TestRequestBytes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*http.Request)
		want   string
	}{
		{"plain", func(*http.Request) {}, "GET /a?b=c HTTP/1.1\r\nHost: o.test\r\n\r\n"},
		{"sorted", func(r *http.Request) { r.Header = http.Header{"Via": {"1.1 a", "1.1 b"}, "Accept": {"*/*"}} },
			"GET /a?b=c HTTP/1.1\r\nHost: o.test\r\nAccept: */*\r\nVia: 1.1 a\r\nVia: 1.1 b\r\n\r\n"},
		{"no agent", func(r *http.Request) { r.Header = http.Header{"User-Agent": {""}} }, "GET /a?b=c HTTP/1.1\r\nHost: o.test\r\n\r\n"},
		{"another host", func(r *http.Request) { r.Host = "ä.test:81" }, "GET /a?b=c HTTP/1.1\r\nHost: xn--4ca.test:81\r\n\r\n"},
		{"zone", func(r *http.Request) { r.Host = "[fe80::1%25eth0]:81" }, "GET /a?b=c HTTP/1.1\r\nHost: [fe80::1]:81\r\n\r\n"},
		{"absolute", func(r *http.Request) { r.URL.Opaque = "http://p.test/x" }, "GET http://p.test/x?b=c HTTP/1.1\r\nHost: o.test\r\n\r\n"},
		{"closes", func(r *http.Request) { r.Close = true }, "GET /a?b=c HTTP/1.1\r\nHost: o.test\r\nConnection: close\r\n\r\n"},
		{"framing of the caller", func(r *http.Request) {
			r.Header = http.Header{"Content-Length": {"7"}, "Transfer-Encoding": {"chunked"}, "Host": {"evil"}, "Trailer": {"X"}}
		}, "GET /a?b=c HTTP/1.1\r\nHost: o.test\r\n\r\n"},
		{"nothing", func(r *http.Request) { r.Method = "POST" }, "POST /a?b=c HTTP/1.1\r\nHost: o.test\r\nContent-Length: 0\r\n\r\n"},
		{"length", func(r *http.Request) {
			r.Method, r.Body, r.ContentLength = "PUT", io.NopCloser(strings.NewReader("hello!")), 5
		},
			"PUT /a?b=c HTTP/1.1\r\nHost: o.test\r\nContent-Length: 5\r\n\r\nhello"},
		{"chunks", func(r *http.Request) {
			r.Method, r.Body, r.ContentLength = "POST", io.NopCloser(io.MultiReader(strings.NewReader("hello"), strings.NewReader("you"))), -1
			r.Trailer = http.Header{"X-Sum": {"1"}, "Content-Length": {"9"}}
		}, "POST /a?b=c HTTP/1.1\r\nHost: o.test\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length,X-Sum\r\n\r\n" +
			"5\r\nhello\r\n3\r\nyou\r\n0\r\nX-Sum: 1\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			near, far := net.Pipe()
			got := make(chan string, 1)
			go func() {
				defer far.Close()
				all, p := "", make([]byte, 4096)
				for len(all) < len(tt.want) {
					n, err := far.Read(p)
					if all += string(p[:n]); err != nil {
						break
					}
				}
				got <- all
				io.WriteString(far, "HTTP/1.1 204 No Content\r\n\r\n")
				io.Copy(io.Discard, far)
			}()
			r, _ := http.NewRequest("GET", "http://o.test/a?b=c", nil)
			tt.change(r)
			to := &Transport{Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
			resp, err := to.RoundTrip(r)
			if sent := <-got; err != nil || sent != tt.want {
				t.Errorf("RoundTrip sent %q, %v, %v, want %q", sent, resp, err, tt.want)
			}
			to.CloseIdleConnections()
		})
	}
}

// TestRequestRefused checks that nothing is sent of what no server may get, and that the body is closed.
func TestRequestRefused(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"scheme":  func(r *http.Request) { r.URL.Scheme = "ftp" },
		"no host": func(r *http.Request) { r.URL.Host = "" },
		"method":  func(r *http.Request) { r.Method = "GE T" },
		"CONNECT": func(r *http.Request) { r.Method = "CONNECT" },
		"name":    func(r *http.Request) { r.Header = http.Header{"X Y": {"z"}} },
		"value":   func(r *http.Request) { r.Header = http.Header{"X": {"z\r\nY: 1"}} },
		"target":  func(r *http.Request) { r.URL.Opaque = "/x HTTP/1.1\r\nX: y" },
		"Host":    func(r *http.Request) { r.Host = "a b" },
		"no such": func(r *http.Request) { r.URL.Host = "xn--\xff.test" },
	} {
		body := &closes{Reader: strings.NewReader("x")}
		r, _ := http.NewRequest("POST", "http://o.test/", body)
		change(r)
		to := &Transport{Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				if n, _ := io.Copy(io.Discard, far); n > 0 {
					t.Errorf("%s: %d bytes were sent", name, n)
				}
			}()
			return near, nil
		}}
		if resp, err := to.RoundTrip(r); !errors.Is(err, ErrInvalid) || body.closed.Load() == 0 {
			t.Errorf("%s: RoundTrip() = %v, %v, body closed: %d", name, resp, err, body.closed.Load())
		}
	}
}

type closes struct {
	io.Reader
	closed atomic.Int32
}

func (c *closes) Close() error { c.closed.Add(1); return nil }

// TestUploads checks bodies of requests against a server of net/http, with trailers both ways and an answer before the end.
func TestUploads(t *testing.T) {
	var refuse atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() {
			w.Header().Set("Connection", "close")
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
			return
		}
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Trailer", "X-Sum")
		n, err := io.Copy(w, r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Sum", r.Trailer.Get("X-Sum")+strconv.FormatInt(n, 10))
	}))
	defer s.Close()
	to := &Transport{HeaderTimeout: time.Minute}
	defer to.CloseIdleConnections()
	for _, size := range []int{1, 1000, mostPiece - 1, mostPiece, mostPiece + 1, 5*mostPiece + 7} {
		for _, length := range []int64{int64(size), -1} {
			for _, expect := range []string{"", "100-continue"} {
				sent := strings.Repeat("x", size)
				r, _ := http.NewRequest("POST", s.URL, io.NopCloser(iotest.HalfReader(strings.NewReader(sent))))
				if r.ContentLength = length; length < 0 {
					r.Trailer = http.Header{"X-Sum": {"n"}}
				}
				if expect != "" {
					r.Header.Set("Expect", expect)
				}
				resp, err := to.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				want := strconv.Itoa(size)
				if length < 0 {
					want = "n" + want
				}
				if string(got) != sent || err != nil || resp.Trailer.Get("X-Sum") != want {
					t.Errorf("size %d, length %d, %q: %d bytes back, %v, trailers %v", size, length, expect, len(got), err, resp.Trailer)
				}
			}
		}
	}
	refuse.Store(true)
	through := 0
	for range 20 {
		body := &closes{Reader: io.LimitReader(endless{}, 8<<20)}
		r, _ := http.NewRequest("POST", s.URL, body)
		r.ContentLength = 8 << 20
		if resp, err := to.RoundTrip(r); err == nil {
			if b, err := io.ReadAll(resp.Body); err == nil && resp.StatusCode == 413 && string(b) == "too long\n" {
				through++
			}
			resp.Body.Close()
		}
		for body.closed.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if through == 0 {
		t.Error("no early answer came through")
	}
	t.Logf("%d of 20 early answers came through", through)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestBodyOfARequestBreaks checks that a body that cannot be read ends its request, by its own error, and that the server
// gets no whole request.
func TestBodyOfARequestBreaks(t *testing.T) {
	broken := errors.New("broken")
	for _, length := range []int64{100, -1} {
		whole := make(chan error, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			whole <- err
		}))
		r, _ := http.NewRequest("POST", s.URL, io.NopCloser(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken))))
		r.ContentLength = length
		if _, err := new(Transport).RoundTrip(r); err != broken {
			t.Errorf("length %d: RoundTrip() = %v, want the body's error", length, err)
		}
		if err := <-whole; err == nil {
			t.Errorf("length %d: the server got a whole request", length)
		}
		s.Close()
	}
}

// TestExpect checks that a body is sent when the server wants it, or says nothing for a second, and not when it refuses it.
func TestExpect(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first string // what the server says before it reads the body
		sent  bool
		least time.Duration
	}{
		{"wanted", "HTTP/1.1 100 Continue\r\n\r\n", true, 0},
		{"silence", "", true, expectTimeout},
		{"refused", "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				got := make(chan string, 1)
				go func() {
					in := bufio.NewReader(far)
					http.ReadRequest(in)
					io.WriteString(far, tt.first)
					if !tt.sent {
						b, _ := io.ReadAll(in)
						got <- string(b)
						return
					}
					p := make([]byte, 5)
					io.ReadFull(in, p)
					got <- string(p)
					io.WriteString(far, "HTTP/1.1 204 No Content\r\n\r\n")
				}()
				to := &Transport{Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
				r, _ := http.NewRequest("PUT", "http://o.test/", strings.NewReader("hello"))
				r.Header.Set("Expect", "100-continue")
				began := time.Now()
				resp, err := to.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				sent := <-got
				if (sent == "hello") != tt.sent || !tt.sent && sent != "" || (resp.StatusCode == 204) != tt.sent || time.Since(began) != tt.least {
					t.Errorf("%d after %v, the server got %q", resp.StatusCode, time.Since(began), sent)
				}
				to.CloseIdleConnections()
				far.Close()
			})
		})
	}
}

// TestInterim checks that interim answers are passed on in order, and that a hook's error ends the request.
func TestInterim(t *testing.T) {
	s := newScript(t, func(path string, to net.Conn) {
		io.WriteString(to, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	var got []string
	enough := errors.New("enough")
	var fail error
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		got = append(got, strconv.Itoa(code)+h.Get("Link"))
		return fail
	}})
	r, _ := http.NewRequestWithContext(ctx, "GET", s.url("/"), nil)
	resp, err := new(Transport).RoundTrip(r)
	if err != nil || resp.StatusCode != 200 || strings.Join(got, " ") != "103a 102" {
		t.Errorf("%v, %v after %v", resp, err, got)
	}
	fail = enough
	if _, err := new(Transport).RoundTrip(r); err != enough {
		t.Errorf("RoundTrip() = %v, want the hook's error", err)
	}
}

// TestUpgrade checks that both ends of a connection that changed its protocol are the caller's.
func TestUpgrade(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		http.ReadRequest(in)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly ")
		io.Copy(c, in)
	}()
	r, _ := http.NewRequest("GET", "http://"+l.Addr().String(), nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
	resp, err := new(Transport).RoundTrip(r)
	if err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	both := resp.Body.(interface {
		io.ReadWriteCloser
		CloseWrite() error
	})
	defer both.Close()
	io.WriteString(both, "later")
	both.CloseWrite()
	if got, err := io.ReadAll(both); string(got) != "early later" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}
