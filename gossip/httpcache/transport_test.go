package httpcache

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// stored is an origin that answers with a response, given as text.
func stored(head, body string) roundTripFunc {
	return func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		for line := range strings.Lines(head) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			rec.Header().Set(name, value)
		}
		io.WriteString(rec, body)
		return rec.Result(), nil
	}
}

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

// A body that is too long for the store is passed on, and one that broke off is not stored.
func TestTransportBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longest = 16 << 10
		whole := strings.Repeat("x", longest)
		broken := errors.New("broken")
		for name, tt := range map[string]struct {
			body   io.Reader
			length int64
			stored bool
		}{
			"whole":              {strings.NewReader(whole), longest, true},
			"of unknown length":  {strings.NewReader(whole), -1, true},
			"too long":           {strings.NewReader(whole + "+"), longest + 1, false},
			"too long, unheard":  {strings.NewReader(whole + "+"), -1, false},
			"empty":              {strings.NewReader(""), 0, true},
			"broken off":         {io.MultiReader(strings.NewReader("01"), iotest.ErrReader(broken)), 10, false},
			"as it ends, broken": {io.MultiReader(strings.NewReader("01"), iotest.ErrReader(broken)), -1, false},
		} {
			c := newTestMember(t, "c", nil, memstore.Open(4*longest))
			resp, err := c.Transport(roundTripFunc(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Cache-Control": {"max-age=60"}}, Body: io.NopCloser(tt.body), ContentLength: tt.length}, nil
			})).RoundTrip(httptest.NewRequest("GET", "http://o.test/x", nil))
			if err != nil {
				t.Fatal(err)
			}
			io.ReadAll(resp.Body)
			synctest.Wait()
			if got := c.objects() == 1; got != tt.stored {
				t.Errorf("%s: stored is %v, want %v", name, got, tt.stored)
			}
		}
	})
}

// A copy from a sibling is used for a week at most, whatever lifetime it states: also if the origin
// confirms it, and if another sibling passes it on.
func TestSiblingsWordRunsOut(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name, lifetime string
		passed         time.Duration // when another asks the one that was lied to
	}{
		{"a long lifetime", "max-age=31536000", 6 * day},
		{"validated before", "max-age=345600", 5*day + time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			defer w.close()
			w.sibling(holds("wrong", "Etag: \"e\"", "Cache-Control: "+tt.lifetime))
			origin := roundTripFunc(func(r *http.Request) (*http.Response, error) {
				h, status, body := http.Header{"Etag": {`"e"`}, "Cache-Control": {tt.lifetime}}, http.StatusOK, "right"
				if r.Header.Get("If-None-Match") != "" {
					status, body = http.StatusNotModified, ""
				}
				return &http.Response{StatusCode: status, Header: h, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
			})
			b := newTestMember(t, "b", w.client, nil)
			c := newTestMember(t, "c", w.client, nil)
			start := time.Now()
			get := func(cache *Member, at time.Duration, want string) {
				t.Helper()
				time.Sleep(time.Until(start.Add(at)))
				if body, resp := fetchAll(t, cache.Transport(origin), "http://o.test/x"); body != want {
					t.Errorf("%s: %v at c, after %v: %q, want %q: %v", tt.name, cache == c, at, body, want, resp.Header)
				}
			}
			get(b, 0, "wrong")
			w.sibling(b.ServeHTTP)
			w.known = w.known[1:] // the one that lied has left
			get(b, 5*day, "wrong")
			get(c, tt.passed, "wrong")
			get(b, 7*day-time.Minute, "wrong")
			get(b, 7*day, "right")
			get(c, 7*day, "right")
		})
	}
}

// TestWritesThroughTransports: a write through a transport removes all variants of its URL from all
// caches, and no sibling brings them back.
func TestWritesThroughTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 3)
		defer w.close()
		origin := roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				w.write()
				return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody}, nil
			}
			w.mu.Lock()
			version := w.source
			w.mu.Unlock()
			return stored("Cache-Control: max-age=1000\nVary: Accept", fmt.Sprint("v", version))(r)
		})
		get := func(i int, want string) {
			t.Helper()
			for _, accept := range []string{"a/b", "c/d"} {
				r := httptest.NewRequest("GET", "http://site.test/x", nil)
				r.Header.Set("Accept", accept)
				resp, err := w.all[i].Transport(origin).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				if body, _ := io.ReadAll(resp.Body); string(body) != want {
					t.Errorf("c%d has %s, want %s: %v", i, body, want, resp.Header["Cache-Status"])
				}
			}
		}
		write := func(i int, method string) {
			t.Helper()
			if _, err := w.all[i].Transport(origin).RoundTrip(httptest.NewRequest(method, "http://site.test/x", nil)); err != nil {
				t.Fatal(err)
			}
		}
		for version, method := range []string{"POST", "PUT", "DELETE"} {
			for i := range w.all {
				get(i, fmt.Sprint("v", version))
				time.Sleep(3 * time.Second)
			}
			write(version, method)
			for i, c := range w.all {
				if n := c.objects(); n != 0 {
					t.Errorf("after %s c%d has %d responses", method, i, n)
				}
				get(i, fmt.Sprint("v", version+1))
			}
		}
		// A cache that missed the write still has the old object, but no sibling gets it.
		time.Sleep(3 * time.Second)
		w.net.Partition([]string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.3"})
		write(0, "POST")
		if n := w.all[2].objects(); n != 2 {
			t.Fatalf("c2 has %d responses: it has heard of the write already", n)
		}
		w.net.Heal()
		get(1, "v4")
		time.Sleep(20 * time.Second)
		get(2, "v4")
	})
}

// TestWritesThroughOtherCaches: the same for caches of other programs, between a Transport and a
// Handler.
func TestWritesThroughOtherCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 2)
		defer w.close()
		old := stored("Cache-Control: max-age=1000\nCache-Status: other; hit", "old")
		question := httptest.NewRequest("GET", "http://site.test/x", nil)
		question.Header.Set("Cache-Control", "only-if-cached")
		asked := func(i int) int {
			rec := httptest.NewRecorder()
			(&sibling.Handler{Name: "p", Cache: old, Cluster: w.nodes[i]}).ServeHTTP(rec, question)
			return rec.Code
		}
		if peering.NameInvalidations(question.Header, w.nodes[0], "GET http://site.test/x"); asked(1) != 200 {
			t.Errorf("before the write: %d", asked(1))
		}
		removed := 0
		w.nodes[1].OnInvalidation(func(target invalidation.Target) {
			if target.Name == "GET http://site.test/x" {
				removed++
			}
		})
		other := &sibling.Transport{Siblings: w.all[0].Siblings, Origin: stored("", "written"), Cluster: w.nodes[0]}
		write := func() {
			if _, err := other.RoundTrip(httptest.NewRequest("PUT", "http://site.test/x", nil)); err != nil {
				t.Fatal(err)
			}
		}
		if write(); removed != 1 {
			t.Errorf("the other cache was told %d times", removed)
		}
		w.net.Partition([]string{"10.0.0.1"}, []string{"10.0.0.2"})
		write()
		w.net.Heal()
		if peering.NameInvalidations(question.Header, w.nodes[0], "GET http://site.test/x"); asked(1) != 504 || asked(0) != 200 {
			t.Errorf("one that has not heard of it answers %d, one that has %d", asked(1), asked(0))
		}
		time.Sleep(20 * time.Second)
		if asked(1) != 200 || removed != 2 {
			t.Errorf("later: %d, told %d times", asked(1), removed)
		}
	})
}
