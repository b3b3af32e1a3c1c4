package http1

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A secure server answers with the protocol of a request.
type secure struct {
	*httptest.Server
	made atomic.Int64 // connections
}

func newSecure(t *testing.T, h2 bool) *secure {
	s := &secure{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Upgrade"] != nil {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "x")
			w.WriteHeader(http.StatusSwitchingProtocols)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Got", http.StatusText(int(n)))
		io.WriteString(w, r.Proto)
	}))
	s.EnableHTTP2 = h2
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.made.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// TestHTTP2 checks by which protocol a server is asked, and on how many connections.
func TestHTTP2(t *testing.T) {
	two, one := newSecure(t, true), newSecure(t, false)
	roots := x509.NewCertPool()
	roots.AddCert(two.Certificate())
	var to atomic.Pointer[secure]
	client := &Transport{HTTP2: true, TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}, HeaderTimeout: time.Minute,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, to.Load().Listener.Addr().String())
		}}
	defer client.CloseIdleConnections()
	ask := func(want string) {
		t.Helper()
		if resp, body, err := get(client, "GET", "https://o.test/"); err != nil || body != want || resp.Proto != want {
			t.Errorf("%v %q, %v, want %s", resp, body, err, want)
		}
	}
	to.Store(two)
	for range 5 {
		ask("HTTP/2.0")
	}
	if n := two.made.Load(); n != 2 { // the first has found out what the server speaks
		t.Errorf("%d connections for five requests by HTTP/2", n)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { ask("HTTP/2.0") })
	}
	all.Wait()
	if n := two.made.Load(); n != 2 {
		t.Errorf("%d connections for twenty requests at once by HTTP/2", n)
	}

	r, _ := http.NewRequest("GET", "https://o.test/", nil)
	r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"x"}}
	if resp, err := client.RoundTrip(r); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("an upgrade: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	ask("HTTP/2.0")

	// The server is replaced by one that speaks HTTP/1 only, and then again.
	to.Store(one)
	two.CloseClientConnections()
	ask("HTTP/1.1")
	ask("HTTP/1.1")
	client.CloseIdleConnections()
	to.Store(two)
	ask("HTTP/2.0")

	before := two.made.Load()
	client.MaxAge = time.Nanosecond
	ask("HTTP/2.0")
	ask("HTTP/2.0")
	if n := two.made.Load() - before; n != 4 {
		t.Errorf("%d connections for two requests when none may be old", n)
	}
	strange := &Transport{HTTP2: true, Dial: client.Dial}
	if _, _, err := get(strange, "GET", "https://o.test/"); err == nil {
		t.Error("a certificate that nobody has signed is trusted")
	}
}

// TestClear checks HTTP/2 without TLS, and that the pool's limits hold for a host that is forgotten.
func TestClear(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	client := &Transport{Clear: true}
	for range 3 {
		if _, body, err := get(client, "GET", s.URL); err != nil || body != "HTTP/2.0" {
			t.Errorf("%q, %v", body, err)
		}
	}
	client.CloseIdleConnections()
	client.pool.forget(func(*host) bool { return true })
	if _, body, err := get(client, "GET", s.URL); err != nil || body != "HTTP/2.0" {
		t.Errorf("%q, %v", body, err)
	}
}

// TestEndOfTLS checks that an answer without a length is whole only if TLS itself was ended: anybody on the way can close
// the connection below it (RFC 9112 section 9.8). One with a length is whole by its bytes.
func TestEndOfTLS(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
	for _, tt := range []struct {
		name, answer string
		end          func(c *tls.Conn, below *net.TCPConn)
		whole        bool
	}{
		{"alert", ok + "\r\nhello", func(c *tls.Conn, _ *net.TCPConn) { c.Close() }, true},
		{"half", ok + "\r\nhello", func(c *tls.Conn, _ *net.TCPConn) { c.CloseWrite() }, true},
		{"closed below", ok + "\r\nhello", func(_ *tls.Conn, below *net.TCPConn) { below.CloseWrite() }, false},
		{"reset below", ok + "\r\nhello", func(_ *tls.Conn, below *net.TCPConn) { below.SetLinger(0); below.Close() }, false},
		{"length, closed below", ok + "Content-Length: 5\r\n\r\nhello", func(_ *tls.Conn, below *net.TCPConn) { below.CloseWrite() }, true},
		{"chunked, closed below", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", func(_ *tls.Conn, below *net.TCPConn) { below.CloseWrite() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			read := make(chan bool)
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(c, tt.answer)
				<-read
				tt.end(c.(*tls.Conn), c.(*tls.Conn).NetConn().(*net.TCPConn))
			}))
			s.StartTLS()
			defer s.Close()
			client := &Transport{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig}
			defer client.CloseIdleConnections()
			r, _ := http.NewRequest("GET", s.URL, nil)
			resp, err := client.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			close(read)
			if b, err := io.ReadAll(resp.Body); string(b) != "hello" && tt.whole || (err == nil) != tt.whole {
				t.Errorf("the body is %q, %v, want it whole: %v", b, err, tt.whole)
			}
		})
	}
}
