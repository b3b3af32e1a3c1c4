package httpcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// storeBytes is the size of the store of a site, of which a body may take a quarter.
const storeBytes = 64 << 10

// A site is a handler behind a cache without siblings.
type site struct {
	*Member
	t     *testing.T
	made  int // answers by the handler
	write http.HandlerFunc
}

func newSite(t *testing.T, write http.HandlerFunc) *site {
	return &site{Member: newTestMember(t, "me", nil, memstore.Open(storeBytes)), t: t, write: write}
}

// ask requests a URL with fields "Name: value".
func (s *site) ask(method, target string, fields ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	r.Body = io.NopCloser(r.Body) // as handlers before it may
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	rec := httptest.NewRecorder()
	s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.made++
		s.write(w, r)
	})).ServeHTTP(rec, r)
	synctest.Wait() // until the answer is stored
	return rec.Result()
}

// fields sets header fields "Name: value" and writes a body.
func fields(body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Add(name, value)
		}
		io.WriteString(w, body)
	}
}

// Responses that may be stored for all clients are stored, and no others.
func TestServeKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const public = "Cache-Control: public, max-age=60"
		for name, tt := range map[string]struct {
			write http.HandlerFunc
			kept  bool
		}{
			"public":                  {fields("x", public), true},
			"immutable":               {fields("x", public+", immutable"), true},
			"for shared caches":       {fields("x", "Cache-Control: max-age=0, s-maxage=60"), true},
			"expires":                 {fields("x", "Cache-Control: public", "Expires: Fri, 01 Jan 2100 00:00:00 GMT"), true},
			"of its length":           {fields("x", public, "Content-Length: 1"), true},
			"flushed":                 {func(w http.ResponseWriter, r *http.Request) { fields("x", public)(w, r); w.(http.Flusher).Flush() }, true},
			"as long as may be":       {fields(strings.Repeat("x", storeBytes/4), public), true},
			"too long":                {fields(strings.Repeat("x", storeBytes/4+1), public), false},
			"nothing said":            {fields("x"), false},
			"for how long":            {fields("x", "Cache-Control: public"), false},
			"not for whom":            {fields("x", "Cache-Control: max-age=60"), true},
			"by heuristics":           {fields("x", "Date: Fri, 02 Jan 2100 00:00:00 GMT", "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"), true},
			"private":                 {fields("x", public+", private"), false},
			"private in part":         {fields("x", public+`, private="set-cookie"`), false},
			"no-store":                {fields("x", public, "Cache-Control: no-store"), false},
			"no-cache":                {fields("x", public+", no-cache"), false},
			"at once stale":           {fields("x", "Cache-Control: public, max-age=0"), false},
			"a lifetime that is none": {fields("x", "Cache-Control: public, max-age=x"), false},
			"old":                     {fields("x", public, "Age: 60"), false},
			"varies":                  {fields("x", public, "Vary: Accept"), true},
			"varies by all":           {fields("x", public, "Vary: *"), false},
			"to be validated":         {fields("x", "Cache-Control: max-age=0", `Etag: "e"`), false}, // each time
			"a cookie":                {fields("x", public, "Set-Cookie: a=b"), false},
			"not found": {func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "public, max-age=60")
				w.WriteHeader(404)
			}, true},
		} {
			s := newSite(t, tt.write)
			first, _ := io.ReadAll(s.ask("GET", "http://o.test/x").Body)
			resp := s.ask("GET", "http://o.test/x")
			again, _ := io.ReadAll(resp.Body)
			if string(first) != string(again) {
				t.Errorf("%s: %q, then %q", name, first, again)
			}
			if kept := s.made == 1; kept != tt.kept || kept != strings.Contains(resp.Header.Get("Cache-Status"), "; hit") {
				t.Errorf("%s: kept is %v, want %v; %v", name, kept, tt.kept, resp.Header)
			}
		}
	})
}

// An answer from the store is the stored response with its age. The store also answers conditional
// and range requests, as long as the response is fresh.
func TestServeFromStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, fields("<html>0123", "Cache-Control: public, max-age=60", "Age: 10", `Etag: "e"`, "Cache-Status: behind; hit", "Connection: close", "X-A: b"))
		s.ask("GET", "http://o.test/x?y")
		time.Sleep(3 * time.Second)
		for _, tt := range []struct {
			method, field string
			status        int
			body          string
		}{
			{"GET", "X-C: d", 200, "<html>0123"},
			{"HEAD", "X-C: d", 200, ""},
			{"GET", "Range: bytes=6-8", 206, "012"},
			{"GET", `If-None-Match: "e"`, 304, ""},
			{"GET", "Cache-Control: only-if-cached", 200, "<html>0123"},
		} {
			resp := s.ask(tt.method, "http://O.test/x?y", tt.field)
			body, _ := io.ReadAll(resp.Body)
			h := resp.Header
			if resp.StatusCode != tt.status || string(body) != tt.body || h.Get("Age") != "13" || h.Get("X-A") != "b" ||
				fmt.Sprint(h["Cache-Status"]) != "[behind; hit me; hit; ttl=47]" || h["Connection"] != nil ||
				tt.status == 200 && (h.Get("Content-Type") != "text/html; charset=utf-8" || h.Get("Content-Length") != "10") {
				t.Errorf("%s, %s: %d %q %v", tt.method, tt.field, resp.StatusCode, body, h)
			}
		}
		if s.made != 1 {
			t.Errorf("made %d times", s.made)
		}
		time.Sleep(47 * time.Second)
		if code := s.ask("GET", "http://o.test/x?y", "Cache-Control: only-if-cached").StatusCode; code != 504 {
			t.Errorf("a question for what is stale: %d", code)
		}
	})
}

// Requests that a stored response must not answer get the handler's own answer.
func TestServePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			method, target, field string
			made                  bool   // by the handler
			then                  string // what is in the store afterwards: "old", "new" or ""
		}{
			{"GET", "http://o.test/x", "Cookie: a=b", false, "old"},
			{"GET", "https://o.test/x", "X-A: b", true, "old"}, // by TLS, another
			{"GET", "http://other.test/x", "X-A: b", true, "old"},
			{"GET", "http://o.test/x", "Authorization: Basic eDp5", false, "old"}, // since it is public
			{"GET", "http://o.test/x", "Cache-Control: no-store", false, "old"},
			{"GET", "http://o.test/y", "Cache-Control: no-store", true, "old"},
			{"GET", "http://o.test/x", "Upgrade: websocket", true, "old"},
			{"GET", "http://o.test/x", "Cache-Control: no-cache", true, "new"},
			{"GET", "http://o.test/x", "Pragma: no-cache", true, "new"},
			{"HEAD", "http://o.test/x", "Cache-Control: no-cache", true, ""}, // nothing shows that it is the same still
			{"OPTIONS", "http://o.test/x", "X-A: b", true, "old"},
			{"POST", "http://o.test/x", "X-A: b", true, ""},
			{"DELETE", "http://o.test/x", "X-A: b", true, ""},
			{"POST", "http://o.test/x", "Cache-Control: only-if-cached", true, ""},
			{"GET", "http://value.invalid/?GET%20http://o.test/x", "X-A: b", true, "old"}, // no client names identities
		} {
			s := newSite(t, fields("old", "Cache-Control: public, max-age=60"))
			s.ask("GET", "http://o.test/x")
			s.write, s.made = fields("new", "Cache-Control: public, max-age=60"), 0
			s.ask(tt.method, tt.target, tt.field)
			if (s.made == 1) != tt.made {
				t.Errorf("%s %s, %s: the handler was asked %d times", tt.method, tt.target, tt.field, s.made)
			}
			if then := s.has("GET http://o.test/x"); then != tt.then {
				t.Errorf("%s %s, %s: the store has %q then, want %q", tt.method, tt.target, tt.field, then, tt.then)
			}
		}
	})
}

// What may not be stored costs each client a call of the handler, at once; the trailers of GET are dropped, and no others.
func TestServeUnstored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMember(t, "a", nil, nil)
		ask := func(method string) http.Header {
			rec := httptest.NewRecorder()
			err := m.Serve(rec, httptest.NewRequest(method, "/x", nil), func(w http.ResponseWriter, r *http.Request) error {
				time.Sleep(time.Second)
				w.Header().Set("Cache-Control", "no-store")
				io.WriteString(w, "body")
				w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
				return nil
			})
			if err != nil || rec.Body.String() != "body" {
				t.Errorf("%s: %q, %v", method, rec.Body, err)
			}
			return rec.Result().Trailer
		}
		if trailer := ask("GET"); len(trailer) != 0 {
			t.Errorf("GET has trailers %v", trailer)
		}
		start := time.Now()
		var clients sync.WaitGroup
		for range 5 {
			clients.Go(func() { ask("GET") })
		}
		clients.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("clients waited for each other: %v", took)
		}
		if trailer := ask("POST"); trailer.Get("Grpc-Status") != "0" {
			t.Errorf("POST has trailers %v", trailer)
		}
	})
}

// The answer of a handler that fails is not stored, and its error is returned.
func TestServeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		broken := errors.New("broken")
		rec := httptest.NewRecorder()
		err := s.Serve(rec, httptest.NewRequest("GET", "/x", nil), func(w http.ResponseWriter, r *http.Request) error {
			fields("part", "Cache-Control: public, max-age=60")(w, r)
			return broken
		})
		if err != broken || rec.Body.String() != "part" || s.objects() != 0 {
			t.Errorf("Serve = %v, wrote %q, keeps %d", err, rec.Body, s.objects())
		}
		s.write = func(w http.ResponseWriter, r *http.Request) {
			fields("part", "Cache-Control: public, max-age=60")(w, r)
			panic(http.ErrAbortHandler)
		}
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the panic is not handed on")
				}
			}()
			s.ask("GET", "/x")
		}()
		if n := s.objects(); n != 0 {
			t.Errorf("%d objects of a handler that gave up", n)
		}
	})
}

// A client that has gone before its answer begins gets none: if Serve returned, net/http would answer 200.
func TestServeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) { time.Sleep(time.Minute) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		rec := httptest.NewRecorder()
		defer func() {
			if recover() != http.ErrAbortHandler || rec.Body.Len() != 0 || len(rec.Header()) != 0 {
				t.Errorf("Serve did not give up, or wrote %v %q", rec.Header(), rec.Body)
			}
			time.Sleep(time.Hour) // until the handler has returned
		}()
		s.Wrap(s.write).ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "http://o.test/x", nil))
	})
}

// Two servers, of which the second gets objects from the first.
func TestServeFromSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		a := newSite(t, fields("from a", "Cache-Control: public, max-age=60", "X-A: b"))
		b := newSite(t, fields("from b", "Cache-Control: public, max-age=60"))
		b.Member = newTestMember(t, "me", w.client, nil)
		w.sibling(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/z" {
				holds("private", "Cache-Control: private, max-age=60")(rw, r)
				return
			}
			a.ServeHTTP(rw, r)
		})
		for _, target := range []string{"http://o.test/x?y=%7e", "https://o.test/%2f"} {
			a.ask("GET", target)
			time.Sleep(5 * time.Second)
			for _, status := range []string{"[me; hit; ttl=55 me; fwd=uri-miss; fwd-status=200; stored; detail=sibling]", "[me; hit; ttl=55]"} {
				resp := b.ask("GET", target)
				body, _ := io.ReadAll(resp.Body)
				if h := resp.Header; string(body) != "from a" || fmt.Sprint(h["Cache-Status"]) != status || h.Get("Age") != "5" || h.Get("X-A") != "b" {
					t.Errorf("%s: %q %v, want %s", target, body, h, status)
				}
			}
		}
		if body, _ := io.ReadAll(b.ask("GET", "http://o.test/z").Body); string(body) != "from b" {
			t.Errorf("what is not for everybody: %q", body)
		}
		if s := w.client.Stats(); s.Asked != 3 || s.Hits != 2 || s.FalseHits != 1 || b.made != 1 {
			t.Errorf("made %d, %+v", b.made, s)
		}
	})
}

// Concurrent requests for a response cause one call of the handler. If the response cannot be
// shared, the others wait only until that is known.
func TestServeCollapses(t *testing.T) {
	for name, tt := range map[string]struct {
		control string
		calls   int64
		took    time.Duration
	}{
		"for all":     {"public, max-age=60", 1, 2 * time.Second},
		"not for all": {"private", 20, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.close()
			var calls atomic.Int64
			h := newTestMember(t, "me", w.client, nil).Wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				time.Sleep(time.Second)
				rw.Header().Set("Cache-Control", tt.control)
				io.WriteString(rw, "page")
				time.Sleep(time.Second)
			}))
			start := time.Now()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, httptest.NewRequest("GET", "http://site.test/x", nil))
					if rec.Body.String() != "page" {
						t.Errorf("%s: %q", name, rec.Body)
					}
				})
			}
			all.Wait()
			if took := time.Since(start); calls.Load() != tt.calls || took != tt.took {
				t.Errorf("%s: %d calls in %v, want %d in %v", name, calls.Load(), took, tt.calls, tt.took)
			}
		})
	}
}

// Servers of one site under two host names share objects by an Identity function.
func TestCacheIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		caches := []*Member{newTestMember(t, "me", w.client, nil), newTestMember(t, "me", w.client, nil)}
		made := 0
		site := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			made++
			rw.Header().Set("Cache-Control", "public, max-age=60")
			io.WriteString(rw, "page")
		})
		for i, c := range caches {
			c.url = func(r *http.Request) *url.URL { return &url.URL{Scheme: "http", Host: "site.test", Path: r.URL.Path} }
			rec := httptest.NewRecorder()
			c.Wrap(site).ServeHTTP(rec, httptest.NewRequest("GET", fmt.Sprintf("http://node%d.test/x", i), nil))
			if rec.Body.String() != "page" {
				t.Errorf("%q", rec.Body)
			}
			if i == 0 {
				w.sibling(c.ServeHTTP)
			}
		}
		if made != 1 {
			t.Errorf("made %d times", made)
		}
	})
}

// TestUnsafeMethods: a request that changes an object removes it at all caches before it is
// answered, unless it fails. Nothing can be removed through the handler for siblings.
func TestUnsafeMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 2)
		defer w.close()
		status := http.StatusOK
		site := func(i int, method string) *http.Response {
			rec := httptest.NewRecorder()
			h := w.all[i].Wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					rw.Header().Set("Cache-Control", "public, max-age=100")
				}
				rw.WriteHeader(status)
			}))
			h.ServeHTTP(rec, httptest.NewRequest(method, "http://site.test/x", nil))
			synctest.Wait()
			return rec.Result()
		}
		says := func(i int, method, want string) {
			t.Helper()
			got, _, _ := strings.Cut(site(i, method).Header.Get("Cache-Status"), "; ttl")
			if got != want {
				t.Errorf("%s at c%d: Cache-Status %q, want %q", method, i, got, want)
			}
		}
		says(0, "GET", "c0; fwd=uri-miss; fwd-status=200; stored")
		time.Sleep(3 * time.Second)
		site(1, "GET")
		says(1, "GET", "c1; hit")
		status = http.StatusForbidden
		says(0, "POST", "c0; fwd=method; fwd-status=403")
		says(1, "GET", "c1; hit")
		for _, c := range w.all {
			rec := httptest.NewRecorder()
			c.ServeHTTP(rec, httptest.NewRequest("POST", "http://site.test/x", nil))
			if rec.Code != http.StatusForbidden {
				t.Errorf("POST where siblings ask: %d", rec.Code)
			}
		}
		says(1, "GET", "c1; hit")
		status = http.StatusOK
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
			says(0, method, "c0; fwd=method; fwd-status=200")
			says(1, "GET", "c1; fwd=uri-miss; fwd-status=200; stored")
			says(1, "GET", "c1; hit")
		}
		says(1, "HEAD", "c1; hit")
		says(0, "OPTIONS", "c0; fwd=method")
		says(1, "GET", "c1; hit")
	})
}

// The cost of a cache around a trivial handler: a hit, a miss that is stored, and a request that
// is passed on.
func BenchmarkServe(b *testing.B) {
	handler := fields(strings.Repeat("x", 4096), "Cache-Control: public, max-age=60", "Content-Type: text/plain")
	wrapped := newTestMember(b, "me", nil, nil).Wrap(handler)
	for _, bb := range []struct {
		name    string
		handler http.Handler
		field   string
	}{{"handler", handler, "X-A"}, {"hit", wrapped, "X-A"}, {"kept", wrapped, "Pragma"}, {"passed", wrapped, "If-Match"}} {
		b.Run(bb.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "http://o.test/x", nil)
			r.Header.Set(bb.field, "no-cache")
			b.ReportAllocs()
			for b.Loop() {
				bb.handler.ServeHTTP(&discard{h: http.Header{}}, r)
			}
		})
	}
}

// discard is a ResponseWriter that discards the response.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
