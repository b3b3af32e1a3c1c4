package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// raw2 sends one request by HTTP/2 without TLS: fields as "name: value", and a body if it isn't "".
// It returns the status of the answer; 0 = the stream was reset.
func raw2(t *testing.T, addr string, fields []string, body string) (status string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, http2.ClientPreface)
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, field := range fields {
		name, value, _ := strings.Cut(field[1:], ": ")
		enc.WriteField(hpack.HeaderField{Name: field[:1] + name, Value: value})
	}
	for rest, first := block.Bytes(), true; first || len(rest) > 0; first = false {
		n := min(len(rest), 16000)
		if first {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: rest[:n], EndStream: body == "", EndHeaders: n == len(rest)})
		} else {
			f.WriteContinuation(1, n == len(rest), rest[:n])
		}
		rest = rest[n:]
	}
	if body != "" {
		f.WriteData(1, true, []byte(body))
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.RSTStreamFrame:
			return "0"
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		}
	}
}

// raw1 sends bytes, and then that no more will come, if they end in [cut]. It returns the status of the answer; "" = the
// connection was closed without one.
func raw1(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	text, ends := strings.CutSuffix(text, cut)
	io.WriteString(c, text)
	if ends {
		c.(*net.TCPConn).CloseWrite()
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == io.ErrUnexpectedEOF {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

const cut = "✂" // not sent

// Nothing that a client sends makes an origin count as one that does not answer.
func TestFaultsOfClients(t *testing.T) {
	get := func(more ...string) []string {
		return append([]string{":method: GET", ":path: /x", ":scheme: http", ":authority: site.test"}, more...)
	}
	post := func(more ...string) []string {
		return append([]string{":method: POST", ":path: /x", ":scheme: http", ":authority: site.test"}, more...)
	}
	long := make([]string, 40)
	for i := range long {
		long[i] = fmt.Sprintf("x-%d: %s", i, strings.Repeat("v", 200))
	}
	for _, c := range []struct {
		name   string
		fields []string // by HTTP/2
		body   string
		text   string // or by HTTP/1
		status string // one or several that are right; 0 = a reset
		other  string // from an HTTP/2 origin, if that differs
	}{
		{name: "method with a space", fields: []string{":method: GET /a", ":path: /x", ":scheme: http", ":authority: site.test"}, status: "400"},
		{name: "method that is no token", fields: []string{":method: GÄT", ":path: /x", ":scheme: http", ":authority: site.test"}, status: "400"},
		{name: "host with a space", fields: []string{":method: POST", ":path: /x", ":scheme: http", ":authority: a b.site.test"}, status: "200 400"},
		{name: "host that is no UTF-8", fields: []string{":method: POST", ":path: /x", ":scheme: http", ":authority: a\xff.site.test"}, status: "200 400"},
		{name: "trailer that is no token", fields: post("trailer: a b"), body: "x", status: "200"},
		{name: "trailer that is no token, by HTTP/1", text: "POST /x HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\nTrailer: a b\r\n\r\n1\r\nx\r\n0\r\n\r\n", status: "200"},
		{name: "trailer that is no token, of a request without a body", fields: get("trailer: timeout=5"), status: "200"},
		{name: "trailer that is forbidden", text: "POST /x HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\nTrailer: Host\r\n\r\n1\r\nx\r\n0\r\nHost: x\r\nContent-Length: 7\r\n\r\n", status: "200"},
		{name: "broken trailer", text: "POST /x HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nno field\r\n\r\n", status: "400"},
		{name: "space around a value", fields: get("x-a: 1 "), status: "400"},
		{name: "field of the connection", fields: get("connection: upgrade", "upgrade: websocket"), status: "400"},
		{name: "TE by HTTP/2", fields: post("te: gzip"), status: "400"},
		{name: "long header", fields: get(long...), status: "200", other: "431"},
		{name: "long header of a POST", fields: post(long...), body: "x", status: "200", other: "431"},
		{name: "body shorter than its length, by HTTP/2", fields: post("content-length: 9"), body: "x", status: "400"},
		{name: "body longer than its length, by HTTP/2", fields: post("content-length: 1"), body: "xxxx", status: "0 400"},
		{name: "body shorter than its length", text: "POST /x HTTP/1.1\r\nHost: site.test\r\nContent-Length: 9\r\n\r\nx" + cut, status: "400"},
		{name: "no chunk", text: "POST /x HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", status: "400"},
		{name: "expecting, and then no chunk", text: "POST /x HTTP/1.1\r\nHost: site.test\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", status: "100 400"},
		{name: "GET with no chunk", text: "GET /x HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", status: "400"},
		{name: "WebSocket with no chunk", text: "GET /x HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", status: "400"},
		{name: "tunnel", text: "CONNECT site.test:99999 HTTP/1.1\r\nHost: site.test:99999\r\n\r\n", status: "405"},
	} {
		for _, out := range []leg{overOne, inClear} {
			t.Run(fmt.Sprintf("%s/%s", c.name, out), func(t *testing.T) {
				want := c.status
				if out == inClear && c.other != "" {
					want = c.other
				}
				client, base, h := through(t, mixed, out, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) },
					func(s *Site) { s.Hosts = []string{"site.test", "*.site.test"} })
				r, _ := http.NewRequest("GET", base+"/before", nil) // the origin says what it accepts
				r.Host = "site.test"
				if resp, err := client.Do(r); err != nil || resp.StatusCode != 200 {
					t.Fatal(resp, err)
				}
				at := strings.TrimPrefix(base, "http://")
				var got string
				if c.text != "" {
					got = raw1(t, at, c.text)
				} else {
					got = raw2(t, at, c.fields, c.body)
				}
				if !slices.Contains(strings.Fields(want), got) {
					t.Errorf("status %s, want %s", got, want)
				}
				if n := h.cache.Counters.OriginErrors.Load(); n != 0 || len(h.FailingOrigins()) > 0 || h.applied.Load().sites[0].backends[0].rests(time.Now()) {
					t.Errorf("%d errors of origins, failing: %+v", n, h.FailingOrigins())
				}
				if n := h.Counters().GatewayErrors; n != 0 {
					t.Errorf("%d errors of gateways", n)
				}
			})
		}
	}
}

// A client that closes its side of the connection counts as gone: net/http ends the context of its request. It gets the
// end of the connection then, which is no answer, and the origin is not blamed.
func TestHalfClosedClient(t *testing.T) {
	for _, text := range []string{
		"GET /x HTTP/1.1\r\nHost: site.test\r\n\r\n",
		"GET /x HTTP/1.1\r\nHost: site.test\r\nAuthorization: a\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: site.test\r\nContent-Length: 1\r\n\r\nx",
		"POST /x HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nSum: 7\r\n\r\n",
	} {
		for _, out := range []leg{overOne, inClear} {
			method, _, _ := strings.Cut(text, " ")
			t.Run(fmt.Sprintf("%s of %d bytes/%s", method, len(text), out), func(t *testing.T) {
				end := make(chan struct{})
				_, base, h := through(t, overOne, out, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					<-end
				})
				defer close(end)
				if got := raw1(t, strings.TrimPrefix(base, "http://"), text+cut); got != "" {
					t.Errorf("status %s, want none", got)
				}
				if n := h.Counters(); n.ClientsGone != 1 || n.OriginErrors != 0 {
					t.Errorf("%d clients gone and %d errors of origins, want 1 and 0", n.ClientsGone, n.OriginErrors)
				}
			})
		}
	}
}

// A reset by an origin is the client's fault if the request is malformed, or if its own deadline
// has passed. Any other is the origin's. Whatever the origin does, it gets a request on few connections.
func TestResets(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    http2.ErrCode
		timeout string
		status  int
		fault   bool
	}{
		{"malformed", http2.ErrCodeProtocol, "", 400, false},
		{"the client's deadline", http2.ErrCodeCancel, "10m", 504, false},
		{"no deadline", http2.ErrCodeCancel, "", 502, true},
		{"internal", http2.ErrCodeInternal, "10m", 502, true},
		{"goes away", goesAway, "", 502, true},
	} {
		for _, method := range []string{"GET", "POST", "PUT"} {
			t.Run(method+"/"+c.name, func(t *testing.T) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				var connections atomic.Int32
				go func() {
					for {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						connections.Add(1)
						go resets(conn, c.code)
					}
				}()
				h, err := New(Config{Settings: Settings{Origin: &url.URL{Scheme: "h2c", Host: l.Addr().String()}}, Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 1 << 20}})
				if err != nil {
					t.Fatal(err)
				}
				defer h.Close()
				r := httptest.NewRequest(method, "/x", nil)
				if method != "GET" {
					r = httptest.NewRequest(method, "/x", strings.NewReader("body"))
				}
				if c.timeout != "" {
					r.Header.Set("Grpc-Timeout", c.timeout)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != c.status || (len(h.FailingOrigins()) > 0) != c.fault || (h.cache.Counters.OriginErrors.Load() > 0) != c.fault {
					t.Errorf("status %d, failing %+v, %d errors, want %d, fault %v", w.Code, h.FailingOrigins(), h.cache.Counters.OriginErrors.Load(), c.status, c.fault)
				}
				if n := connections.Load(); n > 12 {
					t.Errorf("%d connections for one request", n)
				}
			})
		}
	}
}

const goesAway http2.ErrCode = 1 << 31 // not a code: the server closes the connection

// resets is an HTTP/2 server that resets each request with a code.
func resets(c net.Conn, code http2.ErrCode) {
	defer c.Close()
	io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
	f := http2.NewFramer(c, c)
	f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
			continue
		case *http2.HeadersFrame:
			if !frame.StreamEnded() {
				continue
			}
		case *http2.DataFrame:
			if !frame.StreamEnded() {
				continue
			}
		default:
			continue
		}
		if code == goesAway {
			f.WriteGoAway(0, http2.ErrCodeNo, nil)
			return
		}
		f.WriteRSTStream(frame.Header().StreamID, code)
	}
}

// picky is a transport to an origin that takes two seconds, and no header with X-Long.
type picky struct{}

func (picky) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(2 * time.Second)
	if r.Header["X-Long"] != nil {
		return nil, errors.New("http2: request header list larger than peer's advertised limit")
	}
	header := http.Header{"Cache-Control": {"max-age=10, stale-if-error=600"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
	return &http.Response{StatusCode: 200, Header: header, ContentLength: 2, Body: io.NopCloser(strings.NewReader("ok")), Request: r}, nil
}

// A client's error is no other's answer, and not hidden by a stale copy.
func TestFaultIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(http.ResponseWriter, *http.Request, int) {})
		defer w.close()
		w.tune = func(c *Config) { c.OriginTransport = picky{} }
		h := w.start("a", t.TempDir())
		leader := make(chan reply)
		go func() { leader <- w.get("a", "/x", "X-Long: 1") }()
		time.Sleep(time.Second)
		if r := w.get("a", "/x"); r.StatusCode != 200 || r.body != "ok" {
			t.Errorf("a follower: %s %q %s", r.Status, r.body, r.status())
		}
		if r := <-leader; r.StatusCode != 431 {
			t.Errorf("the leader: %s %s", r.Status, r.status())
		}
		time.Sleep(time.Minute)
		if r := w.get("a", "/x", "X-Long: 1"); r.StatusCode != 431 {
			t.Errorf("with a stale copy: %s %s", r.Status, r.status())
		}
		if n := h.Counters(); n.ClientErrors != 2 || n.OriginErrors != 0 {
			t.Errorf("%d errors of clients and %d of origins, want 2 and 0", n.ClientErrors, n.OriginErrors)
		}
	})
}
