package http1

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// leaving serves one connection of HTTP/2: it answers the first requests, and what comes behind as refuse says.
func leaving(c net.Conn, answers int, refuse func(f *http2.Framer, stream uint32)) {
	defer c.Close()
	io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	for n := 0; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			ended = frame.StreamEnded()
		}
		if !ended {
			continue
		}
		stream := frame.Header().StreamID
		if n++; n > answers {
			refuse(f, stream)
			continue
		}
		answer(f, stream)
	}
}

// answer answers 200 without a body.
func answer(f *http2.Framer, stream uint32) {
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x88}, EndHeaders: true, EndStream: true})
}

// A server of HTTP/2 that goes away, or refuses a stream, says which requests it has not begun: those are sent again
// whatever their method, if their body can be had again, and not without end. One that it may have begun is not.
func TestRequestsThatWereNotBegun(t *testing.T) {
	goAway := func(f *http2.Framer, _ uint32) { f.WriteGoAway(0, http2.ErrCodeNo, nil) }
	begun := func(f *http2.Framer, stream uint32) {
		f.WriteGoAway(stream, http2.ErrCodeNo, nil)
		f.WriteRSTStream(stream, http2.ErrCodeInternal)
	}
	var busy atomic.Bool // for one request
	refusedOnce := func(f *http2.Framer, stream uint32) {
		if busy.CompareAndSwap(true, false) {
			f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
			return
		}
		answer(f, stream)
	}
	refused := func(f *http2.Framer, stream uint32) { f.WriteRSTStream(stream, http2.ErrCodeRefusedStream) }
	for name, c := range map[string]struct {
		first       int // requests that a connection answers; -1 = the first answers none, others all
		refuse      func(*http2.Framer, uint32)
		method      string
		once        bool // the body cannot be had again
		ok          bool
		connections int32 // at most
	}{
		"POST, goes away":         {-1, goAway, "POST", false, true, 2},
		"PUT, goes away":          {-1, goAway, "PUT", false, true, 2},
		"POST, refused once":      {0, refusedOnce, "POST", false, true, 1},
		"POST, its body is gone":  {-1, goAway, "POST", true, false, 1},
		"POST, was begun":         {-1, begun, "POST", false, false, 1},
		"POST, goes away always":  {0, goAway, "POST", false, false, 3},
		"POST, refused always":    {0, refused, "POST", false, false, 3},
		"GET, goes away always":   {0, goAway, "GET", false, false, 12},
		"second POST on each one": {1, goAway, "POST", false, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			busy.Store(true)
			var connections atomic.Int32
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					answers := c.first
					if n := connections.Add(1); answers < 0 && n > 1 {
						answers = 100
					}
					go leaving(conn, answers, c.refuse)
				}
			}()
			client := &Transport{Clear: true}
			defer client.CloseIdleConnections()
			send := func() error {
				r, _ := http.NewRequest(c.method, "http://"+l.Addr().String()+"/", strings.NewReader("body"))
				if c.method == "GET" {
					r.Body, r.GetBody, r.ContentLength = nil, nil, 0
				}
				if c.once {
					r.GetBody = nil
				}
				resp, err := client.RoundTrip(r)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			if c.first > 0 {
				if err := send(); err != nil {
					t.Fatal(err)
				}
			}
			if err := send(); (err == nil) != c.ok {
				t.Errorf("%v, want success: %v", err, c.ok)
			}
			if n := connections.Load(); n > c.connections {
				t.Errorf("%d connections, want at most %d", n, c.connections)
			}
		})
	}
}

// An origin that goes away all the time by HTTP/2 is asked by HTTP/1 at last, unless the request has no meaning there.
func TestGoesAwayAlways(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
		io.WriteString(w, r.Proto)
	}))
	s.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
		leaving(c, 0, func(f *http2.Framer, _ uint32) { f.WriteGoAway(0, http2.ErrCodeNo, nil) })
	}}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	client := &Transport{HTTP2: true, TLS: &tls.Config{RootCAs: roots}}
	defer client.CloseIdleConnections()
	for _, c := range []struct{ method, body, kind, want string }{
		{"GET", "", "", "HTTP/1.1"},
		{"POST", "body ", "", "body HTTP/1.1"},
		{"POST", "body ", "application/grpc", ""},
	} {
		r, _ := http.NewRequest(c.method, s.URL, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		resp, err := client.RoundTrip(r)
		if (err == nil) != (c.want != "") {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		if got, _ := io.ReadAll(resp.Body); string(got) != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		resp.Body.Close()
	}
}
