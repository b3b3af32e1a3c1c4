package sibling

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever a sibling does, the client gets the object, and the outcome is recorded.
func TestTransport(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tt := range map[string]struct {
		siblings []http.HandlerFunc // nil = nobody listens
		body     string
		recorded string
		stats    Stats
	}{
		"nobody":                 {nil, "origin", "", Stats{}},
		"hit":                    {[]http.HandlerFunc{holds("x")}, "x", "p1:hit", Stats{Asked: 1, Hits: 1, Bytes: 1}},
		"false hit":              {[]http.HandlerFunc{lacks}, "origin", "p1:false-hit", Stats{Asked: 1, FalseHits: 1}},
		"false hit, then hit":    {[]http.HandlerFunc{lacks, holds("x")}, "x", "p1:false-hit p2:hit", Stats{Asked: 2, Hits: 1, FalseHits: 1, Bytes: 1}},
		"no more than two":       {[]http.HandlerFunc{lacks, lacks, holds("x")}, "origin", "p1:false-hit p2:false-hit", Stats{Asked: 2, FalseHits: 2}},
		"nobody listens":         {[]http.HandlerFunc{nil}, "origin", "p1:failed", Stats{Asked: 1, Errors: 1}},
		"too slow":               {[]http.HandlerFunc{slow}, "origin", "p1:failed", Stats{Asked: 1, Errors: 1, Hedges: 1, HedgesWon: 1}},
		"an answer of its own":   {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }}, "origin", "p1:failed", Stats{Asked: 1, Errors: 1}},
		"stale":                  {[]http.HandlerFunc{holds("x", "Age: 60")}, "origin", "p1:hit", Stats{Asked: 1, FalseHits: 1}},
		"expired":                {[]http.HandlerFunc{holds("x", "Cache-Control: public", "Expires: 0")}, "origin", "p1:hit", Stats{Asked: 1, FalseHits: 1}},
		"private":                {[]http.HandlerFunc{holds("x", "Cache-Control: max-age=9, private")}, "origin", "p1:hit", Stats{Asked: 1, FalseHits: 1}},
		"varies by what we sent": {[]http.HandlerFunc{holds("x", "Vary: accept-language")}, "x", "p1:hit", Stats{Asked: 1, Hits: 1, Bytes: 1}},
		"varies by a cookie":     {[]http.HandlerFunc{holds("x", "Vary: Cookie")}, "origin", "p1:hit", Stats{Asked: 1, FalseHits: 1}},
		"varies by anything":     {[]http.HandlerFunc{holds("x", "Vary: *")}, "origin", "p1:hit", Stats{Asked: 1, FalseHits: 1}},
		"resets the connection":  {[]http.HandlerFunc{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, holds("x")}, "x", "p1:failed p2:hit", Stats{Asked: 2, Hits: 1, Errors: 1, Bytes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{})
				defer w.close()
				for _, h := range tt.siblings {
					w.sibling(h)
				}
				start := time.Now()
				resp, body, err := w.get(t.Context(), "/x", "Accept-Language: de", "Cookie: id=1")
				if err != nil || body != tt.body || resp.StatusCode != 200 || resp.Request.URL.Path != "/x" {
					t.Errorf("%q, %v, want %q", body, err, tt.body)
				}
				if took := time.Since(start); took > 600*time.Millisecond {
					t.Errorf("took %v", took)
				}
				if got := w.recorded(); got != tt.recorded {
					t.Errorf("recorded %q, want %q", got, tt.recorded)
				}
				if got := w.client.Stats(); got != tt.stats {
					t.Errorf("Stats = %+v, want %+v", got, tt.stats)
				}
				if want := map[bool]int{true: 1}[tt.body == "origin"]; w.asked() != want {
					t.Errorf("the origin was asked %d times, want %d", w.asked(), want)
				}
			})
		})
	}
}

// Requests that no sibling may answer go to the origin, and lookup requests go nowhere.
func TestNotAsked(t *testing.T) {
	for _, tt := range []struct {
		method, field, body string
		want                string
	}{
		{"POST", "X-A: b", "q", "origin"},
		{"GET", "X-A: b", "q", "origin"},
		{"HEAD", "X-A: b", "", ""},
		{"GET", "Authorization: Basic eDp5", "", "origin"},
		{"GET", "Range: bytes=0-1", "", "origin"},
		{"GET", "Cache-Control: no-cache", "", "origin"},
		{"GET", "Cache-Control: max-age=0", "", "origin"},
		{"GET", "Cache-Control: private, No-Store", "", "origin"},
		{"GET", "Pragma: no-cache", "", "origin"},
		{"GET", "Cache-Control: only-if-cached", "", "no fresh copy here\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			defer w.close()
			w.sibling(holds("x"))
			var body io.Reader
			if tt.body != "" {
				body = strings.NewReader(tt.body)
			}
			r, _ := http.NewRequestWithContext(t.Context(), tt.method, originURL+"/x", body)
			name, value, _ := strings.Cut(tt.field, ": ")
			r.Header.Set(name, value)
			resp, err := w.transport().RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != tt.want || err != nil || w.client.Stats().Asked != 0 {
				t.Errorf("%s, %s: %q, %v, %+v", tt.method, tt.field, got, err, w.client.Stats())
			}
			if questions := tt.want == "no fresh copy here\n"; questions != (resp.StatusCode == 504) || questions != (w.asked() == 0) {
				t.Errorf("%s, %s: %s, the origin was asked %d times", tt.method, tt.field, resp.Status, w.asked())
			}
		})
	}
}

// TestTold: which fields of a request siblings get, and which not.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		var got *http.Request
		w.sibling(func(rw http.ResponseWriter, r *http.Request) { got = r; holds("x")(rw, r) })
		w.get(t.Context(), "/x?q=1", "Cookie: secret", "Referer: http://elsewhere.test/", "Accept: text/html", "Via: 1.1 edge",
			"If-None-Match: \"v1\"", "Cache-Control: max-age=40, min-fresh=5")
		if got.RequestURI != originURL+"/x?q=1" || got.Host != "10.9.9.9:80" {
			t.Errorf("asked %s of %s", got.RequestURI, got.Host)
		}
		for name, want := range map[string]string{"Cookie": "", "Referer": "", "Accept": "text/html", "Via": "1.1 edge|1.1 me",
			"If-None-Match": `"v1"`, "Cache-Control": "only-if-cached, max-age=40, min-fresh=5"} {
			if lines := strings.Join(got.Header[name], "|"); lines != want {
				t.Errorf("%s: %q, want %q", name, lines, want)
			}
		}
	})
}

// TestStreams: a body is passed on as it arrives, and breaks off if the sibling's does.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		more := make(chan bool)
		w.sibling(func(rw http.ResponseWriter, r *http.Request) {
			holds("begin")(rw, r)
			rw.(http.Flusher).Flush()
			if !<-more {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(rw, " end")
		})
		for _, whole := range []bool{true, false} {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", originURL+"/x", nil)
			resp, err := w.transport().RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			first := make([]byte, 5)
			if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "begin" {
				t.Errorf("%q, %v", first, err)
			}
			more <- whole
			rest, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if (err == nil) != whole || whole && string(rest) != " end" {
				t.Errorf("whole %v: then %q, %v", whole, rest, err)
			}
		}
		if got := w.recorded(); got != "p1:hit p1:hit p1:failed" {
			t.Errorf("recorded %q", got)
		}
	})
}

// A transfer from a sibling that stalls within a body is given up.
func TestStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		w.sibling(func(rw http.ResponseWriter, r *http.Request) {
			holds("begin")(rw, r)
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		})
		start := time.Now()
		if _, body, err := w.get(t.Context(), "/x"); err == nil || body != "begin" {
			t.Errorf("%q, %v", body, err)
		}
		if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}

// A client that cancels its request returns at once, and no sibling is blamed.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		left := make(chan struct{})
		w.sibling(func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done(); close(left) })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, _, err := w.get(ctx, "/x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		<-left
		if got := w.recorded(); got != "" || w.asked() != 0 {
			t.Errorf("recorded %q, and the origin was asked %d times", got, w.asked())
		}
		ctx, cancel = context.WithCancel(t.Context())
		w.mu.Lock()
		w.known = nil
		w.mu.Unlock()
		w.net.Host("10.0.0.1").Kill()
		cancel()
		if _, _, err := w.get(ctx, "/x"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	_, err := New(Config{Name: "two words", Timeout: -1})
	for _, want := range []string{"two words", "no Locator", "negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q in it", err, want)
		}
	}
}

// Whatever the form of a URL, the lookup uses the identity that peers advertise.
func TestIdentity(t *testing.T) {
	for url, want := range map[string]string{
		"http://example.com":                 "GET http://example.com/",
		"http://user@EXAMPLE.com:80/a?b#c":   "GET http://example.com/a?b",
		"https://example.com:443/%7Ea?b=%2f": "GET https://example.com/%7Ea?b=%2f",
	} {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Identity(r); got != want {
			t.Errorf("Identity(%s) = %q, want %q", url, got, want)
		}
	}
}

// namedLocator records the identities of lookups.
type namedLocator struct {
	*world
	asked []string
}

func (l *namedLocator) Candidates(dst []Candidate, identity string) []Candidate {
	l.asked = append(l.asked, identity)
	return l.world.Candidates(dst, identity)
}

// A lookup uses the identity of Transport.Identity.
func TestTransportIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		l := &namedLocator{world: w}
		client, err := New(Config{Name: "me", Locator: l, HTTP: w.questions})
		if err != nil {
			t.Fatal(err)
		}
		transport := &Transport{Siblings: client, Origin: w.origins, Identity: func(r *http.Request) string { return "blob " + r.URL.Path }}
		r, err := http.NewRequest(http.MethodGet, originURL+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if !slices.Equal(l.asked, []string{"blob /x"}) {
			t.Errorf("asked for %q", l.asked)
		}
	})
}
