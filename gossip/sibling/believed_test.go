package sibling

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A copy from a sibling is used for a week at most, whatever lifetime it states: also if the origin
// confirms it, and if another sibling passes it on.
func TestSiblingsWordRunsOut(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name, lifetime string
		passed         time.Duration // when another asks the one that was lied to
		believes       bool
	}{
		{"a long lifetime", "max-age=31536000", 6 * day, true},
		{"validated before", "max-age=345600", 5*day + time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			defer w.close()
			w.sibling(holds("wrong", "Etag: \"e\"", "Cache-Control: "+tt.lifetime))
			origin := roundTrip(func(r *http.Request) (*http.Response, error) {
				h, status, body := http.Header{"Etag": {`"e"`}, "Cache-Control": {tt.lifetime}}, http.StatusOK, "right"
				if r.Header.Get("If-None-Match") != "" {
					status, body = http.StatusNotModified, ""
				}
				return &http.Response{StatusCode: status, Header: h, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
			})
			b := newTestCache("b", w.client, NewMemory(nil, 0, 0))
			c := newTestCache("c", w.client, NewMemory(nil, 0, 0))
			start := time.Now()
			get := func(cache *Cache, at time.Duration, want string) {
				t.Helper()
				time.Sleep(time.Until(start.Add(at)))
				if body, resp := fetchAll(t, cache.Transport(origin), "http://o.test/x"); body != want {
					t.Errorf("%s: %s after %v: %q, want %q: %v", tt.name, cache.name, at, body, want, resp.Header)
				}
			}
			get(b, 0, "wrong")
			w.sibling(b.ServeHTTP)
			w.known = w.known[1:] // the one that lied has left
			get(b, 5*day, "wrong")
			want := "right"
			if tt.believes {
				want = "wrong"
			}
			get(c, tt.passed, want)
			get(b, 7*day-time.Minute, "wrong")
			get(b, 7*day, "right")
			get(c, 7*day, "right")
		})
	}
}

// A copy of a value is loaded again after a week, however often siblings pass it on.
func TestSiblingsValueRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		load := func(v string) LoadFunc {
			return func(context.Context) ([]byte, time.Time, error) { return []byte(v), time.Time{}, nil }
		}
		a, b, c := w.newCache(), w.newCache(), w.newCache()
		get := func(cache *Cache, v, want string) {
			t.Helper()
			if got, err := cache.Get(t.Context(), "x", load(v)); err != nil || string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
		get(a, "wrong", "wrong")
		w.sibling(a.ServeHTTP)
		get(b, "right", "wrong")
		w.sibling(b.ServeHTTP)
		w.known = w.known[1:]
		time.Sleep(6 * 24 * time.Hour)
		get(c, "right", "wrong")
		time.Sleep(24 * time.Hour)
		get(b, "right", "right")
		w.known = nil
		get(c, "right", "right")
		get(a, "right", "wrong") // its own
	})
}
