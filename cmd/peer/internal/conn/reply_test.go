package conn

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestReplyIsTheServers checks that what a handler writes reaches the client as it does by net/http's server: status, fields,
// trailers, interim answers, body and framing, and whether the connection stays open.
func TestReplyIsTheServers(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4<<10)
	handlers := map[string]http.HandlerFunc{
		"nothing":    func(http.ResponseWriter, *http.Request) {},
		"status":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"odd status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799); io.WriteString(w, "x") },
		"short":      func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a"); io.WriteString(w, "b") },
		"long":       func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a"); io.WriteString(w, long) },
		"short, long": func(w http.ResponseWriter, _ *http.Request) {
			w.Write(nil)
			io.WriteString(w, long)
			io.WriteString(w, "b")
		},
		"fields": func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h["X-Two"], h["no name"], h["X-Line"], h["Date"], h["Server"] = []string{"1", "2"}, []string{"x"}, []string{"a\r\nb: c"}, []string{"now"}, nil
			w.WriteHeader(http.StatusOK)
			h.Set("X-Late", "1")
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "body")
		},
		"no date": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil; io.WriteString(w, "x") },
		"length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "65537")
			io.WriteString(w, "a")
			io.WriteString(w, long)
		},
		"length, flush": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			w.(http.Flusher).Flush()
			io.WriteString(w, "ab")
		},
		"less than said": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "ab")
		},
		"more than said": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "abc")
			if n, err := io.WriteString(w, "d"); n != 0 || err != http.ErrContentLength {
				t.Errorf("a byte more than was said: %d, %v", n, err)
			}
		},
		"no body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			w.WriteHeader(http.StatusNoContent)
			if n, err := io.WriteString(w, "abc"); n != 0 || err != http.ErrBodyNotAllowed {
				t.Errorf("a body of 204: %d, %v", n, err)
			}
			if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("abc")); n != 0 || err != http.ErrBodyNotAllowed {
				t.Errorf("a body of 204 by ReadFrom: %d, %v", n, err)
			}
		},
		"304": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			w.Header().Set("Content-Type", "a/b")
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(http.StatusNotModified)
		},
		"flushes": func(w http.ResponseWriter, _ *http.Request) {
			for _, piece := range []string{"", "a", "", "bc", long, "d"} {
				io.WriteString(w, piece)
				http.NewResponseController(w).Flush()
			}
		},
		"flush alone": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusOK)
			io.WriteString(w, "abc")
			w.Header().Set("X-Sum", "3")
			w.Header().Set("X-Unsaid", "3")
			w.Header().Set(http.TrailerPrefix+"X-Other", "4")
		},
		"trailers alone": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusOK)
			w.Header().Set("X-Sum", "0")
		},
		"trailers of a long body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, long)
			w.Header().Set("X-Sum", "3")
		},
		"trailers unannounced": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "abc")
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Other", "4")
		},
		"interim": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.Header().Set("Content-Length", "3")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			io.WriteString(w, "abc")
		},
		"close": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			io.WriteString(w, "abc")
		},
		"coded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Transfer-Encoding", "chunked")
			io.WriteString(w, long)
		},
		"from": func(w http.ResponseWriter, _ *http.Request) { w.(io.ReaderFrom).ReadFrom(strings.NewReader(long)) },
		"from, length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)+1))
			io.WriteString(w, "a")
			w.(io.ReaderFrom).ReadFrom(strings.NewReader(long))
		},
		"abort": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"abort later": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, long)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	}
	for name, h := range handlers {
		t.Run(name, func(t *testing.T) {
			typed := func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = nil // or net/http guesses one
				h(w, r)
			}
			var got [2]string
			for i := range got {
				got[i] = exchange(t, http.HandlerFunc(typed), i == 1)
			}
			if got[0] != got[1] {
				t.Errorf("the answer is\n%s\nby the server of net/http it is\n%s", got[1], got[0])
			}
		})
	}
}

// exchange describes the answer of a handler, by a server of net/http or without it, and what comes of another request then.
func exchange(t *testing.T, h http.Handler, quick bool) (got string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := NewGate(Limits{})
	served := 0
	s := &http.Server{
		Handler: gate.Requests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served++; h.ServeHTTP(w, r) })),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			ctx = Context(ctx, c)
			if quick {
				Quickly(ctx, h, func() bool { return true })
			}
			return ctx
		},
		ConnState: func(c net.Conn, s http.ConnState) { Idle(c, s == http.StateNew || s == http.StateIdle) },
	}
	go s.Serve(Listen(l, time.Minute, gate))
	defer s.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	for range 2 {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return got + "closed\n"
		}
		for interim := true; interim; {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				if os.IsTimeout(err) {
					t.Fatal(err)
				}
				return got + "closed\n"
			}
			body, err := io.ReadAll(resp.Body)
			if date := resp.Header["Date"]; len(date) == 1 && len(date[0]) == len(http.TimeFormat) {
				date[0] = "a date"
			}
			got += fmt.Sprintf("%s %v\n%v %v %v %d\n%d bytes %v\n", resp.Status, resp.Close, resp.Header, resp.Trailer, resp.TransferEncoding, resp.ContentLength, len(body), err)
			interim = resp.StatusCode < 200
		}
	}
	if quick && served > 0 || !quick && served != 2 {
		t.Errorf("the server has read %d requests", served)
	}
	return got
}

// TestLeaveIsNoticed checks that the context of a request ends when its client leaves, and when its handler has returned, but not before.
func TestLeaveIsNoticed(t *testing.T) {
	ended, stay := make(chan error, 1), make(chan struct{})
	contexts := make(chan context.Context, 1)
	s := newQuickServer(t, Limits{}, nil)
	s.waits = func(ctx context.Context) {
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		contexts <- ctx
		select {
		case <-child.Done():
			ended <- context.Cause(child)
		case <-stay:
			ended <- ctx.Err()
		}
	}
	c, in := s.connect()
	io.WriteString(c, get("/waits"))
	ctx := <-contexts
	time.AfterFunc(looksForLeave*3/2, func() { close(stay) })
	if err := <-ended; err != nil {
		t.Errorf("while the client waits: %v", err)
	}
	if got := answered(in); got != "at once /waits" {
		t.Errorf("then: %q", got)
	}
	s.until("the context ends after the request", func() bool { return ctx.Err() == context.Canceled })
	if <-ctx.Done(); reflect.TypeOf(ctx) != reflect.TypeFor[*life]() {
		t.Errorf("the context is a %T", ctx)
	}
	stay = make(chan struct{})
	io.WriteString(c, get("/waits"))
	<-contexts
	c.Close()
	if err := <-ended; err != context.Canceled {
		t.Errorf("after the client has left: %v", err)
	}
	s.until("no connection is left", func() bool { open, _, _ := s.gate.Stats(); return open == 0 })
}

// TestMayStay checks that a handler that goes on when its client has left keeps neither the connection nor its place.
func TestMayStay(t *testing.T) {
	began, stay, may := make(chan struct{}), make(chan struct{}), false
	s := newQuickServer(t, Limits{}, nil)
	s.waits = func(ctx context.Context) {
		may = MayStay(context.WithValue(ctx, key{}, nil))
		ctx.Done()
		close(began)
		<-stay
	}
	c, _ := s.connect()
	io.WriteString(c, get("/waits"))
	<-began
	c.Close()
	s.until("no connection is left", func() bool { open, _, _ := s.gate.Stats(); return open == 0 })
	close(stay)
	if !may || MayStay(t.Context()) {
		t.Errorf("the handler may stay: %v, any other: %v", may, MayStay(t.Context()))
	}
	s.until("nothing is counted", func() bool {
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		return len(s.gate.hosts) == 0
	})
}
