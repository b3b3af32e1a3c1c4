package sibling

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A site is a handler behind a cache without siblings.
type site struct {
	*Cache
	t     *testing.T
	made  int // answers by the handler
	write http.HandlerFunc
}

func newSite(t *testing.T, write http.HandlerFunc) *site {
	return &site{Cache: newTestCache("me", nil, NewMemory(newHeld(t), 0, 0)), t: t, write: write}
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
		"as long as may be":       {fields("0123456789", public), true},
		"too long":                {fields("0123456789+", public), false},
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
		"to be validated":         {fields("x", "Cache-Control: max-age=0", `Etag: "e"`), false}, // a handler validates nothing
		"a cookie":                {fields("x", public, "Set-Cookie: a=b"), false},
		"cut short":               {fields("x", public, "Content-Length: 2"), false},
		"not found": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=60")
			w.WriteHeader(404)
		}, true},
	} {
		s := newSite(t, tt.write)
		s.MaxBytes = 10
		first, _ := io.ReadAll(s.ask("GET", "http://o.test/x").Body)
		resp := s.ask("GET", "http://o.test/x")
		again, _ := io.ReadAll(resp.Body)
		if string(first) != string(again) {
			t.Errorf("%s: %q, then %q", name, first, again)
		}
		if kept := s.made == 1; kept != tt.kept || kept != hitOf(resp.Header) {
			t.Errorf("%s: kept is %v, want %v; %v", name, kept, tt.kept, resp.Header)
		}
	}
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
				fmt.Sprint(h["Cache-Status"]) != "[me; hit; ttl=47]" || h["Connection"] != nil ||
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
		if n := s.Store.(*Memory).Len(); n != 0 {
			t.Errorf("%d objects after the only one expired", n)
		}
	})
}

// Requests that a stored response must not answer get the handler's own answer.
func TestServePasses(t *testing.T) {
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
		{"HEAD", "http://o.test/x", "Cache-Control: no-cache", true, "old"},
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
		var then string
		if o, ok := s.Store.Get("GET http://o.test/x"); ok {
			then = string(o.Body)
		}
		if then != tt.then {
			t.Errorf("%s %s, %s: the store has %q then, want %q", tt.method, tt.target, tt.field, then, tt.then)
		}
	}
}

// The answer of a handler that fails is not stored, and its error is returned.
func TestServeFails(t *testing.T) {
	s := newSite(t, nil)
	broken := errors.New("broken")
	rec := httptest.NewRecorder()
	err := s.Serve(rec, httptest.NewRequest("GET", "/x", nil), func(w http.ResponseWriter, r *http.Request) error {
		fields("part", "Cache-Control: public, max-age=60")(w, r)
		return broken
	})
	if err != broken || rec.Body.String() != "part" || s.Store.(*Memory).Len() != 0 {
		t.Errorf("Serve = %v, wrote %q, keeps %d", err, rec.Body, s.Store.(*Memory).Len())
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
	if n := s.Store.(*Memory).Len(); n != 0 {
		t.Errorf("%d objects of a handler that gave up", n)
	}
}

// Two servers, of which the second gets objects from the first.
func TestServeFromSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		a := newSite(t, fields("from a", "Cache-Control: public, max-age=60", "X-A: b"))
		b := newSite(t, fields("from b", "Cache-Control: public, max-age=60"))
		b.Siblings = w.client
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
			for _, status := range []string{"[me; hit; ttl=55 me; fwd=uri-miss; stored; detail=sibling]", "[me; hit; ttl=55]"} {
				resp := b.ask("GET", target)
				body, _ := io.ReadAll(resp.Body)
				if h := resp.Header; string(body) != "from a" || fmt.Sprint(h["Cache-Status"]) != status || h.Get("Age") != "5" || h.Get("X-A") != "b" {
					t.Errorf("%s: %q %v, want %s", target, body, h, status)
				}
			}
		}
		w.sibling(holds("a cookie", "Set-Cookie: a=b"))
		if body, _ := io.ReadAll(b.ask("GET", "http://o.test/z").Body); string(body) != "from b" {
			t.Errorf("what is not for everybody: %q", body)
		}
		if s := w.client.Stats(); s.Asked != 4 || s.Hits != 2 || s.FalseHits != 2 || b.made != 1 {
			t.Errorf("made %d, %+v", b.made, s)
		}
	})
}

// A file that is not stored is passed on by ReadFrom, so that the system can send it.
func TestRecorderReadFrom(t *testing.T) {
	for cc, kept := range map[string]bool{"public, max-age=60": true, "private": false} {
		sink := &readFromWriter{ResponseRecorder: httptest.NewRecorder()}
		q := newTestCache("", nil, NewMemory(nil, 0, 0)).request(httptest.NewRequest("GET", "http://o.test/x", nil), &url.URL{Path: "/x"})
		rec := &recorder{ResponseWriter: sink, c: newTestCache("", nil, NewMemory(nil, 0, 0)), q: q, unstorable: func() {}}
		rec.Header().Set("Cache-Control", cc)
		n, err := io.Copy(rec, struct{ io.Reader }{strings.NewReader("a file")})
		if err != nil || n != 6 || sink.Body.String() != "a file" || sink.used == kept || (rec.whole() != nil) != kept {
			t.Errorf("%s: %d, %v, %q, ReadFrom was used: %v", cc, n, err, sink.Body, sink.used)
		}
	}
}

type readFromWriter struct {
	*httptest.ResponseRecorder
	used bool
}

func (w *readFromWriter) ReadFrom(r io.Reader) (int64, error) {
	w.used = true
	return io.Copy(w.ResponseRecorder, r)
}

// The cost of a cache around a trivial handler: a hit, a miss that is stored, and a request that
// is passed on.
func BenchmarkServe(b *testing.B) {
	handler := fields(strings.Repeat("x", 4096), "Cache-Control: public, max-age=60", "Content-Type: text/plain")
	wrapped := newTestCache("me", nil, NewMemory(nil, 0, 0)).Wrap(handler)
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
