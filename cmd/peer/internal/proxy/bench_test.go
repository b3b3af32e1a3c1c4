package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/sibling"
	"github.com/summarycache/summarycache/sim/cputime"
)

// BenchmarkHit requests a stored object over one connection. "plain" is net/http writing the same
// bytes from memory, and "sendfile" from a file, which is the best that this server can do. Bodies
// over 64 KiB are on disk.
func BenchmarkHit(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 128 << 10, 130_000, 1 << 20} {
		body := make([]byte, size)
		path := filepath.Join(b.TempDir(), "body")
		if err := os.WriteFile(path, body, 0o600); err != nil {
			b.Fatal(err)
		}
		file := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f, err := os.Open(path)
			if err != nil {
				b.Error(err)
				return
			}
			defer f.Close()
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", fmt.Sprint(size))
			io.Copy(w, f)
		}))
		origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=3600")
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Etag", `"abc"`)
			w.Header().Set("Content-Length", fmt.Sprint(size))
			w.Write(body)
		}))
		target, _ := url.Parse(origin.URL)
		h, err := New(Config{Settings: Settings{Origin: target}, Config: engine.Config{Name: "bench"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, MemoryBytes: 64 << 20}})
		if err != nil {
			b.Fatal(err)
		}
		peer := httptest.NewUnstartedServer(h)
		peer.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { // as package node serves
			ctx = conn.Context(ctx, c)
			conn.Quickly(ctx, h, func() bool { return true })
			return ctx
		}
		peer.Listener = conn.Listen(peer.Listener, time.Minute, conn.NewGate(conn.Limits{}))
		peer.Start()
		for _, side := range []struct {
			name string
			addr string
		}{{"plain", origin.Listener.Addr().String()}, {"sendfile", file.Listener.Addr().String()}, {"peer", peer.Listener.Addr().String()}} {
			b.Run(fmt.Sprintf("size=%dk/%s", size>>10, side.name), func(b *testing.B) { benchGet(b, side.addr, size) })
		}
		peer.Close()
		h.Close()
		file.Close()
		origin.Close()
	}
}

// BenchmarkUnstored requests a body that must not be stored. "copy" is the minimum between origin
// and client: a transport, io.Copy, and a connection like the peer's.
func BenchmarkUnstored(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20, 16 << 20} {
		body := make([]byte, size)
		origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Content-Length", fmt.Sprint(size))
			w.Write(body)
		}))
		target, _ := url.Parse(origin.URL)
		h, err := New(Config{Settings: Settings{Origin: target}, Config: engine.Config{Name: "bench"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30}})
		if err != nil {
			b.Fatal(err)
		}
		transport := &http.Transport{DisableCompression: true}
		for name, handler := range map[string]http.Handler{"peer": h, "copy": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, origin.URL+r.URL.Path, nil)
			resp, err := transport.RoundTrip(out)
			if err != nil {
				b.Error(err)
				return
			}
			defer resp.Body.Close()
			w.Header().Set("Content-Length", fmt.Sprint(size))
			io.Copy(w, resp.Body)
		})} {
			server := httptest.NewUnstartedServer(handler)
			server.Config.ConnContext = conn.Context
			server.Listener = conn.Listen(server.Listener, time.Minute, nil)
			server.Start()
			b.Run(fmt.Sprintf("size=%dk/%s", size>>10, name), func(b *testing.B) { benchGet(b, server.Listener.Addr().String(), size) })
			server.Close()
		}
		h.Close()
		transport.CloseIdleConnections()
		origin.Close()
	}
}

// benchGet requests one object over one connection.
func benchGet(b *testing.B, addr string, size int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	client := newThrifty(c)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	start := cputime.Used()
	for b.Loop() {
		if err := client.get("/x", size); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
}

// thrifty is a client with little overhead.
type thrifty struct {
	c       net.Conn
	br      *bufio.Reader
	request []byte
}

func newThrifty(c net.Conn) *thrifty { return &thrifty{c: c, br: bufio.NewReaderSize(c, 128<<10)} }

// get requests a target whose body must have this size.
func (t *thrifty) get(target string, size int) error {
	t.request = append(append(append(t.request[:0], "GET "...), target...), " HTTP/1.1\r\nHost: bench\r\n\r\n"...)
	if _, err := t.c.Write(t.request); err != nil {
		return err
	}
	for {
		line, err := t.br.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
	}
	_, err := t.br.Discard(size)
	return err
}

// BenchmarkServe is a hit without the network, with and without traces of it.
func BenchmarkServe(b *testing.B) {
	for name, serve := range map[string]func(testing.TB) func(){"tracing=off": hit, "tracing=on": tracedHit} {
		b.Run(name, func(b *testing.B) {
			once := serve(b)
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}

// hit returns a function that serves a stored object.
func hit(tb testing.TB) func() { return serveHit(tb, nil) }

func tracedHit(tb testing.TB) func() {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tracer := new(tracing.Tracer)
	err := tracer.Use(tb.Context(), tracing.Config{Endpoint: collector.URL})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { tracer.Close(context.Background()); collector.Close() })
	return serveHit(tb, tracer)
}

func serveHit(tb testing.TB, tracer *tracing.Tracer) func() {
	h, err := New(Config{Config: engine.Config{Name: "bench"}, Store: diskstore.Options{Dir: tb.TempDir(), MaxBytes: 1 << 30, MemoryBytes: 64 << 20}, Tracing: tracer, OriginTransport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ContentLength: 1024, Header: http.Header{"Cache-Control": {"max-age=3600"}, "Etag": {`"a"`},
			"Content-Type": {"text/plain"}}, Body: io.NopCloser(io.LimitReader(zeroes{}, 1024))}, nil
	})})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { h.Close() })
	r := httptest.NewRequest("GET", "http://origin.test/x", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	for h.Store().Stats().Objects == 0 { // until then it is served as it arrives
		time.Sleep(time.Millisecond)
	}
	return func() { h.ServeHTTP(discard{http.Header{}}, r) }
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkMiss measures a miss without the connections to client, origin and sibling, so that only
// the work of the peer counts. Compare "not stored" for the cost of storing. "sibling" is answered
// by a sibling.
func BenchmarkMiss(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		for _, way := range []string{"stored", "not stored", "sibling"} {
			b.Run(fmt.Sprintf("size=%dk/%s", size>>10, way), func(b *testing.B) {
				c := Config{Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30}}
				switch way {
				case "stored":
					c.OriginTransport = answering{"max-age=600", size}
				case "not stored":
					c.OriginTransport = answering{"private", size}
				case "sibling":
					c.OriginTransport = answering{"max-age=600", size}
					holder, err := New(Config{Config: engine.Config{Name: "holder"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30, MemoryBytes: 64 << 20}, OriginTransport: c.OriginTransport})
					if err != nil {
						b.Fatal(err)
					}
					defer holder.Close()
					c.Locator, c.SiblingTransport = always{"holder.test:1"}, &repeating{holder: holder}
				}
				h, err := New(c)
				if err != nil {
					b.Fatal(err)
				}
				defer h.Close()
				b.ReportAllocs()
				start, n := cputime.Used(), 0
				r := httptest.NewRequest("GET", "http://origin.test/x", nil)
				w := discard{make(http.Header, 16)}
				for ; b.Loop(); n++ {
					r.URL.Path = "/" + strconv.Itoa(n)
					r.RequestURI = r.URL.String()
					clear(w.h)
					h.ServeHTTP(w, r.WithContext(r.Context()))
				}
				b.ReportMetric(float64(cputime.Used()-start)/float64(n), "cpu-ns/op")
				if got := h.Counters().SiblingHits; way == "sibling" && got < uint64(n)*99/100 {
					b.Fatalf("%d of %d came from the sibling", got, n)
				}
			})
		}
	}
}

// answering is an origin with a body of the same size for every path, and these directives.
type answering struct {
	directives string
	size       int
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(a.size),
		Header: http.Header{"Cache-Control": {a.directives}, "Etag": {`"a"`}}, Body: io.NopCloser(io.LimitReader(zeroes{}, int64(a.size)))}, nil
}

// repeating is a sibling that answers all lookup requests with its answer to the first.
type repeating struct {
	holder http.Handler
	once   sync.Once
	first  *httptest.ResponseRecorder
}

func (t *repeating) RoundTrip(r *http.Request) (*http.Response, error) {
	t.once.Do(func() {
		for t.first == nil || t.first.Code != 200 { // until the holder has stored it
			w, q := httptest.NewRecorder(), httptest.NewRequest("GET", "http://origin.test/x", nil)
			t.holder.ServeHTTP(w, q)
			q.Header = r.Header
			t.first = httptest.NewRecorder()
			t.holder.ServeHTTP(t.first, q)
		}
	})
	h := make(http.Header, len(t.first.Header()))
	for name, lines := range t.first.Header() {
		h[name] = slices.Clone(lines)
	}
	return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(t.first.Body.Len()),
		Header: h, Body: io.NopCloser(bytes.NewReader(t.first.Body.Bytes()))}, nil
}

// always is a locator that finds every object at one peer.
type always struct{ addr string }

func (a always) Candidates(dst []sibling.Candidate, _ string) []sibling.Candidate {
	return append(dst, sibling.Candidate{Peer: "holder", Service: a.addr})
}

func (always) Distrust(string) {}
