package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestBytesLeftBehind checks that what a server leaves behind its answers is nobody's answer, however it is sent: with the
// answer, after it, after a moment in which the connection is kept. 64 clients ask for each URL once.
func TestBytesLeftBehind(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
	s := newScript(t, func(path string, to net.Conn) {
		answer, whole := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true
		switch path[1] {
		case 'g':
			fmt.Fprintf(to, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
			return
		case '2':
			answer = "HTTP/1.1 204 No Content\r\n\r\n"
		case '3':
			answer = "HTTP/1.1 304 Not Modified\r\n\r\n"
		case 'l':
			answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
		case 'c':
			answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
		case 'p':
			whole = false
		}
		if whole {
			io.WriteString(to, answer+evil)
			return
		}
		io.WriteString(to, answer)
		io.WriteString(to, evil)
	})
	to := &Transport{HeaderTimeout: time.Minute}
	defer to.CloseIdleConnections()
	var all sync.WaitGroup
	var right atomic.Int64
	for client := range 64 {
		all.Go(func() {
			for i := range 40 {
				kind := "g23lce"[(client+i)%6]
				method := "GET"
				if kind == 'e' && i%2 == 0 {
					method = "HEAD"
				}
				path := fmt.Sprintf("/%c%d-%d", kind, client, i)
				_, body, err := get(to, method, s.url(path))
				if want := map[byte]string{'g': path, 'l': "hello", 'c': "hello"}[kind]; err == nil && body != want {
					t.Errorf("%s %s = %q, want %q", method, path, body, want)
				} else if err == nil {
					right.Add(1)
				}
			}
		})
	}
	all.Wait()
	if right.Load() < 2000 {
		t.Errorf("%d of %d answers came", right.Load(), 64*40)
	}
	// What comes later finds the connection closed, and after that none is kept for a while.
	before := s.connections()
	for i := range 10 {
		if _, body, err := get(to, "GET", s.url(fmt.Sprint("/g", i))); err != nil || body != fmt.Sprint("/g", i) {
			t.Errorf("%q, %v", body, err)
		}
	}
	if n := s.connections() - before; n != 10 {
		t.Errorf("%d connections for 10 requests to a server that left bytes behind, want 10", n)
	}
}

// TestSurplusOnAKeptConnection checks that what comes between two requests is seen.
func TestSurplusOnAKeptConnection(t *testing.T) {
	late := make(chan net.Conn, 1)
	s := newScript(t, func(path string, to net.Conn) {
		io.WriteString(to, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if path == "/first" {
			late <- to
		}
	})
	var said []string
	to := &Transport{Surplus: func(addr string) { said = append(said, addr) }}
	defer to.CloseIdleConnections()
	for range 3 {
		if _, body, err := get(to, "GET", s.url("/first")); body != "ok" || err != nil {
			t.Fatal(body, err)
		}
		io.WriteString(<-late, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
		time.Sleep(time.Millisecond) // until it has arrived
		if _, body, err := get(to, "GET", s.url("/second")); body != "ok" || err != nil {
			t.Fatal(body, err)
		}
	}
	if len(said) != 1 || said[0] != s.Addr().String() {
		t.Errorf("it was said of %q, want once of the server", said)
	}
}

// TestSentAgain checks which requests are sent once more when their connection ends before an answer.
func TestSentAgain(t *testing.T) {
	for _, tt := range []struct {
		method string
		body   bool // of the request,
		again  bool // which can be had again
		broken int  // connections that end
		sent   int
		ok     bool
	}{
		{"GET", false, false, 0, 1, true},
		{"GET", false, false, 1, 2, true},
		{"GET", false, false, 2, 2, false},
		{"HEAD", false, false, 1, 2, true},
		{"PUT", true, true, 1, 2, true},
		{"PUT", true, false, 1, 1, false},
		{"DELETE", false, false, 1, 2, true},
		{"POST", true, true, 1, 1, false},
		{"POST", false, false, 1, 1, false},
		{"PATCH", true, true, 1, 1, false},
	} {
		for _, kept := range []bool{false, true} {
			var sent, ends atomic.Int64
			s := newScript(t, func(path string, to net.Conn) {
				if path == "/x" && sent.Add(1) <= ends.Load() {
					to.Close()
					return
				}
				io.WriteString(to, "HTTP/1.1 204 No Content\r\n\r\n")
			})
			ends.Store(int64(tt.broken))
			to := &Transport{}
			if kept {
				get(to, "GET", s.url("/before"))
			}
			var body io.Reader
			if tt.body {
				body = strings.NewReader("hello")
			}
			r, _ := http.NewRequest(tt.method, s.url("/x"), body)
			if !tt.again {
				r.GetBody = nil
			}
			resp, err := to.RoundTrip(r)
			if sent.Load() != int64(tt.sent) || (err == nil) != tt.ok {
				t.Errorf("%+v, kept %v: sent %d times, %v, %v", tt, kept, sent.Load(), resp, err)
			}
			to.CloseIdleConnections()
		}
	}
}

// TestClosedWhileKept checks that connections that a server closed meanwhile cost no request.
func TestClosedWhileKept(t *testing.T) {
	last := make(chan net.Conn, 1)
	s := newScript(t, func(_ string, to net.Conn) {
		io.WriteString(to, "HTTP/1.1 204 No Content\r\n\r\n")
		last <- to
	})
	to := &Transport{}
	defer to.CloseIdleConnections()
	for range 3 {
		r, _ := http.NewRequest("POST", s.url("/"), nil) // it would not be sent again
		if _, err := to.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		(<-last).Close()
		time.Sleep(time.Millisecond) // until that has arrived
	}
}

// TestKept checks how many connections are kept, for how long, and that none is in use by two.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		together := func(host string, n int) {
			var all sync.WaitGroup
			w.mu.Lock()
			w.hold, w.gate = n, make(chan struct{})
			w.mu.Unlock()
			for range n {
				all.Go(func() {
					if _, body, err := get(w.to, "GET", "http://"+host+"/"); err != nil || body != host {
						t.Errorf("%q, %v from %s", body, err, host)
					}
				})
			}
			all.Wait()
		}
		w.to.MaxIdle = 8
		for _, step := range []struct {
			host    string
			n       int
			dialled int // after it
			idle    int
		}{{"a", 3, 3, 3}, {"a", 3, 3, 3}, {"a", 6, 6, 4}, {"b", 6, 12, 8}, {"c", 2, 14, 8}} {
			together(step.host, step.n)
			synctest.Wait()
			if _, idle := w.pool(); w.dialled() != step.dialled || idle != step.idle || w.open() != step.idle {
				t.Errorf("%+v: %d dialled, %d idle, %d open", step, w.dialled(), idle, w.open())
			}
		}
		time.Sleep(idleTimeout + 2*sweepEvery)
		synctest.Wait()
		if hosts, idle := w.pool(); hosts != 0 || idle != 0 || w.open() != 0 {
			t.Errorf("after a minute %d hosts, %d idle, %d open", hosts, idle, w.open())
		}
		w.to.MaxAge = 10 * time.Second
		before := w.dialled()
		for range 31 { // a request a second
			together("a", 1)
			time.Sleep(time.Second)
		}
		if n := w.dialled() - before; n != 3 {
			t.Errorf("%d connections in 31 s, want 3: none gets a request when it is older than 10 s", n)
		}
		w.to.CloseIdleConnections()
		synctest.Wait()
		if w.open() != 0 {
			t.Errorf("%d open after CloseIdleConnections", w.open())
		}
	})
}

// TestConnectionOutlivesItsRequest checks that a connection for which a request did not wait is there for the next: where
// connecting takes longer than requests wait, nothing would ever be sent.
func TestConnectionOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		dial := w.to.Dial
		w.to.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(time.Second)
			return dial(ctx, network, addr)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "GET", "http://a/", nil)
		began := time.Now()
		if _, err := w.to.RoundTrip(r); err != context.DeadlineExceeded || time.Since(began) != time.Second/2 {
			t.Errorf("RoundTrip() = %v after %v, want it to end with its context", err, time.Since(began))
		}
		time.Sleep(time.Second)
		began = time.Now()
		if _, body, err := get(w.to, "GET", "http://a/"); body != "a" || err != nil || time.Since(began) != 0 || w.dialled() != 1 {
			t.Errorf("%q, %v after %v and %d connections, want the one that was made meanwhile", body, err, time.Since(began), w.dialled())
		}
		w.to.CloseIdleConnections()
	})
}

// TestConnectTimeout checks that a connection that does not come, and one whose TLS does not, end in time, with an error
// that says so.
func TestConnectTimeout(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		synctest.Test(t, func(t *testing.T) {
			to := &Transport{ConnectTimeout: 7 * time.Second, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if scheme == "https" {
					near, far := net.Pipe()
					go io.Copy(io.Discard, far)
					return near, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			began := time.Now()
			_, _, err := get(to, "GET", scheme+"://o.test/")
			var late net.Error
			if !errors.As(err, &late) || !late.Timeout() || time.Since(began) != 7*time.Second {
				t.Errorf("%s: %v after %v", scheme, err, time.Since(began))
			}
		})
	}
}
