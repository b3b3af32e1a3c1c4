package sibling

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// roundTrip is a cache as a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// stored is a cache that answers with a response, given as text.
func stored(head, body string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		for line := range strings.Lines(head) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			rec.Header().Set(name, value)
		}
		rec.Header()["Content-Type"] = nil
		io.WriteString(rec, body)
		return rec.Result(), nil
	}
}

func TestHandler(t *testing.T) {
	var seen *http.Request
	for name, tt := range map[string]struct {
		cache  roundTrip
		target string
		cc     string
		status int
		body   string
		hit    bool
	}{
		"held":        {stored("Cache-Control: max-age=60\nAge: 9", "x"), "http://o.test/x", "only-if-cached", 200, "x", true},
		"by its path": {stored("Cache-Control: max-age=60\nAge: 9", "x"), "/x", "only-if-cached", 200, "x", true},
		"stale":       {stored("Cache-Control: max-age=60\nAge: 60", "x"), "http://o.test/x", "only-if-cached", 504, "no fresh copy here\n", false},
		"a failure":   {func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, "http://o.test/x", "only-if-cached", 504, "no fresh copy here\n", false},
		"no question": {stored("", "x"), "http://o.test/x", "no-transform", 403, "only requests from siblings (only-if-cached) are answered here\n", false},
		"over a Transport": {func(r *http.Request) (*http.Response, error) {
			client, err := New(Config{Name: "me", Locator: &world{known: []Candidate{{Peer: "p"}}}, HTTP: roundTrip(func(*http.Request) (*http.Response, error) {
				t.Error("a question is asked on")
				return nil, io.EOF
			})})
			if err != nil {
				t.Fatal(err)
			}
			return (&Transport{Siblings: client}).RoundTrip(r)
		}, "http://o.test/x", "only-if-cached", 504, "no fresh copy here\n", false},
	} {
		h := Handler{Name: "p", Cache: roundTrip(func(r *http.Request) (*http.Response, error) {
			seen = r
			return tt.cache(r)
		})}
		r := httptest.NewRequest("GET", tt.target, nil)
		r.Host = "o.test"
		r.Header.Set("Cache-Control", tt.cc)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != tt.status || rec.Body.String() != tt.body || hitOf(rec.Result().Header) != tt.hit {
			t.Errorf("%s: %d %q %v", name, rec.Code, rec.Body, rec.Result().Header)
		}
		if tt.status != 403 && (seen.URL.String() != "http://o.test/x" || !IsLookup(seen)) {
			t.Errorf("%s: the cache was asked for %s, %v", name, seen.URL, seen.Header)
		}
	}
}

// A sibling gets the fields that the cache has, and none that the server guesses or that are the connection's.
func TestHandlerAddsNothing(t *testing.T) {
	s := httptest.NewServer(&Handler{Name: "p", Cache: stored("Cache-Control: max-age=60\nConnection: X-Hop\nX-Hop: 1\nX-Other: 1", "<html>")})
	defer s.Close()
	r, err := http.NewRequest("GET", s.URL+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cache-Control", "only-if-cached")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if h := resp.Header; resp.StatusCode != 200 || h["Content-Type"] != nil || h["X-Hop"] != nil || h["X-Other"] == nil {
		t.Errorf("%d %v, want X-Other and neither X-Hop nor a Content-Type", resp.StatusCode, h)
	}
}
