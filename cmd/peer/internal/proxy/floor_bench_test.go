package proxy

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// BenchmarkMissOverNetHTTP measures a miss of 1 KiB with real connections, client and origin
// included, beside the minimum of net/http: a handler that sends a request to the same origin by a
// Transport, copies the response and stores nothing. "fields" is that with the header fields that
// the peer adds and with its limit for the header. The difference is the cache's own cost.
// ReverseProxy of the standard library also stores nothing.
func BenchmarkMissOverNetHTTP(b *testing.B) {
	for _, fields := range []string{"max-age=600", "private"} {
		origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fields)
			w.Header().Set("Content-Length", "1024")
			w.Write(make([]byte, 1024))
		}))
		defer origin.Close()
		target, err := url.Parse(origin.URL)
		if err != nil {
			b.Fatal(err)
		}
		through := func(transport *http.Transport, request, response http.Header) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				out := r.WithContext(r.Context())
				out.URL.Scheme, out.URL.Host, out.RequestURI = "http", target.Host, ""
				maps.Copy(out.Header, request)
				resp, err := transport.RoundTrip(out)
				if err != nil {
					b.Error(err)
					return
				}
				defer resp.Body.Close()
				maps.Copy(w.Header(), resp.Header)
				maps.Copy(w.Header(), response)
				w.WriteHeader(resp.StatusCode)
				io.Copy(w, resp.Body)
			})
		}
		floor := through(&http.Transport{DisableCompression: true}, nil, nil)
		bounded := &http.Transport{DisableCompression: true, ResponseHeaderTimeout: time.Minute}
		asks := http.Header{"Via": {"1.1 a"}, "X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Proto": {"http"}}
		says := http.Header{"Via": {"1.1 a"}, "Cache-Status": {"a; fwd=uri-miss; fwd-status=200; stored"}}
		if fields != "private" {
			says["Age"] = []string{"0"}
		}
		library := &httputil.ReverseProxy{Transport: bounded,
			Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); maps.Copy(r.Out.Header, asks) },
			ModifyResponse: func(r *http.Response) error { maps.Copy(r.Header, says); return nil }}
		h, err := New(Config{Settings: Settings{Origin: target}, Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: b.TempDir(), MaxBytes: 1 << 30}})
		if err != nil {
			b.Fatal(err)
		}
		defer h.Close()
		for _, of := range []struct {
			name    string
			handler http.Handler
		}{{"floor", floor}, {"fields", through(bounded, asks, says)}, {"ReverseProxy", library}, {"peer", h}} {
			b.Run(fmt.Sprintf("%s/%s", fields, of.name), func(b *testing.B) {
				server := httptest.NewUnstartedServer(of.handler)
				server.Config.ConnContext = conn.Context // as package node serves
				server.Listener = conn.Listen(server.Listener, 0, nil)
				server.Start()
				defer server.Close()
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					resp, err := server.Client().Get(fmt.Sprintf("%s/%p/%d", server.URL, b, n))
					if err != nil {
						b.Fatal(err)
					}
					if got, err := io.Copy(io.Discard, resp.Body); got != 1024 || err != nil {
						b.Fatal(got, err)
					}
					resp.Body.Close()
				}
			})
		}
	}
}
