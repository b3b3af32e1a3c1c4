package proxy

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// The origin gets one request, whatever codings clients accept, and each answer is counted and
// marked by how it was made.
func TestCodingsOfOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := compressing(t, text, "a", "b")
		defer w.close()
		for _, c := range []struct{ peer, accept, status string }{
			{"a", "gzip", "a; fwd=uri-miss; fwd-status=200; stored"},
			{"a", "zstd", "a; hit; ttl=60; detail=recoded"},
			{"a", "identity", "a; hit; ttl=60"},
			{"b", "gzip", "a; hit; ttl=60, b; fwd=uri-miss; fwd-status=200; stored; detail=sibling"},
			{"b", "zstd", "b; hit; ttl=60; detail=recoded"},
			{"b", "zstd", "b; hit; ttl=60"},
		} {
			r := w.get(c.peer, "/x", "Accept-Encoding: "+c.accept)
			synctest.Wait()
			if r.status() != c.status || plain(t, r) != prose || strings.Count(strings.Join(r.Header["Via"], ", "), "1.1 "+c.peer) != 1 {
				t.Errorf("%s at %s: %q, want %q; %v", c.accept, c.peer, r.status(), c.status, r.Header)
			}
		}
		if n := w.origin.count(); n != 1 {
			t.Errorf("the origin got %d requests", n)
		}
		if h := w.origin.last().Header; h.Get("Accept-Encoding") != "identity" || strings.Join(h["Via"], ", ") != "1.1 a" {
			t.Errorf("the origin got a request with %v", h)
		}
		a, b := w.peers["a"].Counters(), w.peers["b"].Counters()
		if a.OriginFetches != 1 || a.OriginRequests != 1 || a.BytesFromOrigins != uint64(len(prose)) || b.SiblingHits != 1 || b.LocalHits != 2 || b.OriginRequests != 0 {
			t.Errorf("a: %+v\nb: %+v", a, b)
		}
		for _, peer := range []string{"a", "b"} {
			if n := len(slices.Collect(w.peers[peer].Advertised())); n != 1 {
				t.Errorf("%s advertises %d objects, want only the uncompressed one", peer, n)
			}
		}
	})
}

// Simultaneous clients with all codings cost one request to the origin, as does an uncompressed
// response, which is stored once.
func TestCodingsAtOnce(t *testing.T) {
	for _, kind := range []string{"text/plain", "image/png"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := compressing(t, func(w http.ResponseWriter, r *http.Request, n int) {
					time.Sleep(time.Second)
					w.Header().Set("Cache-Control", "max-age=60")
					w.Header().Set("Content-Type", kind)
					w.Header().Set("Content-Length", strconv.Itoa(len(prose)))
					io.WriteString(w, prose[:100])
					w.(http.Flusher).Flush()
					time.Sleep(500 * time.Millisecond)
					io.WriteString(w, prose[100:])
				}, "a")
				defer w.close()
				var all sync.WaitGroup
				for i := range 24 {
					all.Go(func() {
						time.Sleep(time.Duration(i/8) * 700 * time.Millisecond)
						if r := w.get("a", "/x", "Accept-Encoding: "+[]string{"gzip", "zstd", "identity", "br"}[i%4]); plain(t, r) != prose || r.err != nil {
							t.Errorf("client %d: %s, %v, %d bytes", i, r.Status, r.err, len(r.body))
						}
					})
				}
				all.Wait()
				synctest.Wait()
				stored := w.peers["a"].Store().Stats()
				want := 3
				if kind != "text/plain" {
					want = 1
				}
				if n := w.origin.count(); n != 1 || int(stored.Inserts) != want || int(stored.Objects) != want {
					t.Errorf("the origin got %d requests, %d stored, %d held, want 1 and %d", n, stored.Inserts, stored.Objects, want)
				}
			})
		})
	}
}

// A derived response lives no longer than its source, is removed with it, and is not stored if it
// must not be.
func TestCodingsLiveAsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := 0
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			if r.Method == http.MethodPost {
				version++
				return
			}
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Etag", fmt.Sprintf(`"%d"`, version))
			if r.URL.Path == "/cookie" {
				w.Header().Set("Set-Cookie", "a=b")
				w.Header().Set("Cache-Control", "max-age=60")
			}
			io.WriteString(w, fmt.Sprint(version)+prose)
		})
		w.tune = func(c *Config) {
			ttl := time.Minute
			c.Rules = rules.Set{{Name: "compress", Compress: []string{"zstd", "gzip"}}, {Name: "ttl", TTL: &ttl}}
		}
		w.start("a", t.TempDir())
		defer w.close()
		get := func(path, accept string, version int, status string) {
			t.Helper()
			r := w.get("a", path, "Accept-Encoding: "+accept)
			synctest.Wait()
			if got := plain(t, r); got != fmt.Sprint(version)+prose || r.status() != status || r.Header.Get("Summarycache-Cache-Control") != "" {
				t.Errorf("%s of %s: version %.1s, %q, want %d, %q", accept, path, got, r.status(), version, status)
			}
		}
		get("/x", "identity", 0, "a; fwd=uri-miss; fwd-status=200; stored")
		time.Sleep(50 * time.Second)
		get("/x", "gzip", 0, "a; hit; ttl=10; detail=recoded")
		get("/x", "gzip", 0, "a; hit; ttl=10")
		time.Sleep(11 * time.Second)
		get("/x", "gzip", 0, "a; fwd=stale; fwd-status=304; stored")
		get("/x", "identity", 0, "a; hit; ttl=60")
		w.do("a", "POST", "/x", "")
		get("/x", "gzip", 1, "a; fwd=uri-miss; fwd-status=200; stored")
		get("/x", "zstd", 1, "a; hit; ttl=60; detail=recoded")
		before := w.origin.count()
		for i := range 3 {
			get("/cookie", "gzip", 1, "a; fwd=uri-miss; fwd-status=200; detail=set-cookie")
			if n := w.origin.count() - before; n != i+1 {
				t.Errorf("%d requests for %d answers that may not be stored", n, i+1)
			}
		}
		w.servers[0].Close()
		time.Sleep(2 * time.Minute)
		get("/x", "gzip", 1, "a; hit; ttl=-60; detail=stale-if-error")
		if r := w.get("a", "/none", "Accept-Encoding: gzip"); r.StatusCode != 502 || r.status() != "a; fwd=uri-miss; detail=origin-unreachable" || strings.Count(r.body, "\n") != 1 {
			t.Errorf("without an origin: %d, %q, %q", r.StatusCode, r.status(), r.body)
		}
		if c := w.peers["a"].Counters(); c.GatewayErrors != 1 {
			t.Errorf("%d errors are counted, want 1", c.GatewayErrors)
		}
	})
}
