package sibling

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// TestWritesThroughTransports: a write through a transport removes all variants of its URL from all
// caches, and no sibling brings them back.
func TestWritesThroughTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCaches(t, 3)
		defer w.close()
		origin := roundTrip(func(r *http.Request) (*http.Response, error) {
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
				if n := c.Store.(*Memory).Len(); n != 0 {
					t.Errorf("after %s c%d has %d responses", method, i, n)
				}
				get(i, fmt.Sprint("v", version+1))
			}
		}
		// A cache that missed the write still has the old object, but no sibling gets it.
		time.Sleep(3 * time.Second)
		w.net.Partition([]string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.3"})
		write(0, "POST")
		if n := w.all[2].Store.(*Memory).Len(); n != 2 {
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
		w := newCaches(t, 2)
		defer w.close()
		old := roundTrip(stored("Cache-Control: max-age=1000\nCache-Status: other; hit", "old"))
		question := httptest.NewRequest("GET", "http://site.test/x", nil)
		question.Header.Set("Cache-Control", "only-if-cached")
		asked := func(i int) int {
			rec := httptest.NewRecorder()
			(&Handler{Name: "p", Cache: old, Cluster: w.nodes[i]}).ServeHTTP(rec, question)
			return rec.Code
		}
		if NameInvalidations(question.Header, w.nodes[0], "GET http://site.test/x"); asked(1) != 200 {
			t.Errorf("before the write: %d", asked(1))
		}
		removed := 0
		w.nodes[1].OnInvalidation(func(target invalidation.Target) {
			if target.Name == "GET http://site.test/x" {
				removed++
			}
		})
		other := &Transport{Siblings: w.all[0].Siblings, Origin: stored("", "written"), Cluster: w.nodes[0]}
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
		if NameInvalidations(question.Header, w.nodes[0], "GET http://site.test/x"); asked(1) != 504 || asked(0) != 200 {
			t.Errorf("one that has not heard of it answers %d, one that has %d", asked(1), asked(0))
		}
		time.Sleep(20 * time.Second)
		if asked(1) != 200 || removed != 2 {
			t.Errorf("later: %d, told %d times", asked(1), removed)
		}
	})
}
