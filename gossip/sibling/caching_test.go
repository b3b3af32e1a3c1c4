package sibling

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fetchAll sends a GET through a transport and reads the body.
func fetchAll(t testing.TB, rt http.RoundTripper, target string) (string, *http.Response) {
	t.Helper()
	resp, err := rt.RoundTrip(httptest.NewRequest("GET", target, nil))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp
}

// One transport gets the objects of the other through its Handler, but those that vary or are long
// from the origin.
func TestCacheTransportFromSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		cacheA := newTestCache("a", nil, NewMemory(nil, 0, 0))
		a := cacheA.Transport(stored("Cache-Control: max-age=60", "from a"))
		w.sibling(cacheA.ServeHTTP)
		cacheB := newTestCache("b", w.client, NewMemory(nil, 0, 0))
		b := cacheB.Transport(stored("Cache-Control: max-age=60", "from b"))
		fetchAll(t, a, "http://o.test/x")
		time.Sleep(5 * time.Second)
		for _, status := range []string{"fwd=uri-miss; stored; detail=sibling", "hit; ttl=55"} {
			body, resp := fetchAll(t, b, "http://o.test/x")
			if o, ok := cacheB.Store.Get("GET http://o.test/x"); !ok || !o.Copied {
				t.Errorf("what a gave is kept: %v, as a copy: %v", ok, ok && o.Copied)
			}
			lines := resp.Header["Cache-Status"]
			if body != "from a" || resp.Header.Get("Age") != "5" || lines[len(lines)-1] != "b; "+status {
				t.Errorf("%q, %v; want from a, %s", body, resp.Header, status)
			}
		}
		if body, _ := fetchAll(t, b, "http://o.test/y"); body != "from b" {
			t.Errorf("what a does not have: %q", body)
		}
		if o, ok := cacheB.Store.Get("GET http://o.test/y"); !ok || o.Copied {
			t.Errorf("what the origin gave is kept: %v, as a copy: %v", ok, ok && o.Copied)
		}
	})
}

// A body that is too long for the store is passed on, and one that broke off is not stored.
func TestCacheTransportBodies(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		body   io.Reader
		length int64
		stored bool
	}{
		"whole":              {strings.NewReader("0123456789"), 10, true},
		"of unknown length":  {strings.NewReader("0123456789"), -1, true},
		"too long":           {strings.NewReader("0123456789+"), 11, false},
		"too long, unheard":  {strings.NewReader("0123456789+"), -1, false},
		"empty":              {strings.NewReader(""), 0, true},
		"broken off":         {io.MultiReader(strings.NewReader("01"), errReader{broken}), 10, false},
		"as it ends, broken": {io.MultiReader(strings.NewReader("01"), errReader{broken}), -1, false},
	} {
		m := NewMemory(nil, 0, 0)
		c := newTestCache("c", nil, m)
		c.MaxBytes = 10
		resp, err := c.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Cache-Control": {"max-age=60"}}, Body: io.NopCloser(tt.body), ContentLength: tt.length}, nil
		})).RoundTrip(httptest.NewRequest("GET", "http://o.test/x", nil))
		if err != nil {
			t.Fatal(err)
		}
		io.ReadAll(resp.Body)
		if got := m.Len() == 1; got != tt.stored {
			t.Errorf("%s: stored is %v, want %v", name, got, tt.stored)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// A response that was being fetched during a write to its URL is not stored.
func TestCacheTransportWrittenMeanwhile(t *testing.T) {
	m := NewMemory(nil, 0, 0)
	c := newTestCache("c", nil, m).Transport(stored("Cache-Control: max-age=60", "old"))
	resp, err := c.RoundTrip(httptest.NewRequest("GET", "http://o.test/x", nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RoundTrip(httptest.NewRequest("PUT", "http://o.test/x", strings.NewReader("new"))); err != nil {
		t.Fatal(err)
	}
	io.ReadAll(resp.Body)
	if n := m.Len(); n != 0 {
		t.Errorf("%d responses are stored", n)
	}
}

// Many goroutines add and remove variants, and their index does not grow.
func TestCacheTransportManyVariants(t *testing.T) {
	m := NewMemory(nil, 50, 0)
	c := newTestCache("c", nil, m).Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
		return stored("Cache-Control: max-age=60\nVary: X-V", r.Header.Get("X-V"))(r)
	}))
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 1000 {
				r := httptest.NewRequest("GET", fmt.Sprint("http://o.test/", i%7), nil)
				r.Header.Set("X-V", fmt.Sprint((i*7+worker)%90))
				resp, err := c.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				if body, _ := io.ReadAll(resp.Body); string(body) != r.Header.Get("X-V") {
					t.Errorf("%s is answered by %q", r.Header.Get("X-V"), body)
				}
			}
		})
	}
	all.Wait()
	n := 0
	for i := range 7 {
		n += len(m.variants.Identities(fmt.Sprint("http://o.test/", i)))
	}
	if n != 50 || m.Len() != 50 {
		t.Errorf("%d variants are known, %d stored, want 50", n, m.Len())
	}
}

// BenchmarkCacheTransport measures a hit, a miss that is stored, and the origin's transport alone.
func BenchmarkCacheTransport(b *testing.B) {
	date := []string{time.Now().UTC().Format(http.TimeFormat)}
	origin := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ContentLength: 1024, Body: io.NopCloser(io.LimitReader(endless{}, 1024)),
			Header: http.Header{"Cache-Control": {"max-age=60"}, "Etag": {`"e"`}, "Date": date}}, nil
	})
	cached := newTestCache("c", nil, NewMemory(nil, 0, 0)).Transport(origin)
	for _, bb := range []struct {
		name string
		rt   http.RoundTripper
		cc   []string
	}{{"origin", origin, nil}, {"miss", cached, []string{"no-cache"}}, {"hit", cached, nil}} {
		b.Run(bb.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "http://o.test/x", nil)
			if bb.cc != nil {
				r.Header["Cache-Control"] = bb.cc
			}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := bb.rt.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }
