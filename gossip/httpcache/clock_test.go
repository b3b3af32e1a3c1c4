package httpcache

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// TestSoftPurgeAndClock: what a soft purge made stale stays so when the wall clock, by which what a former process
// stored ages, was ahead then and is put right.
func TestSoftPurgeAndClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMember(t, "c", nil, memstore.Open(64<<10))
		ahead := time.Duration(0)
		m.Cache.cfg.Now = func() time.Time { return time.Now().Add(ahead) }
		asked := 0
		c := m.Transport(roundTripFunc(func(r *http.Request) (*http.Response, error) {
			asked++
			return stored("Cache-Control: max-age=60\nETag: \"1\"", "x")(r)
		}))
		fetch := func() {
			t.Helper()
			resp, err := c.RoundTrip(httptest.NewRequest("GET", "http://o.test/x", nil))
			if err != nil {
				t.Fatal(err)
			}
			io.ReadAll(resp.Body)
			synctest.Wait()
		}
		fetch()
		m.Cache.clock++ // as after a restart
		ahead = 10 * time.Second
		soft := TargetOf("http://o.test/x")
		soft.Soft = true
		if n := m.Cache.Purge(soft); n != 1 {
			t.Fatalf("%d were made stale", n)
		}
		ahead = 0
		if fetch(); asked != 2 {
			t.Errorf("the origin was asked %d times, want 2: it was fresh again", asked)
		}
	})
}

// TestAgeOfRelayed: what is passed on without being stored has aged on its way: the header took a time, and so did the
// first byte.
func TestAgeOfRelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMember(t, "c", nil, memstore.Open(64<<10))
		for _, age := range []string{"3", ""} {
			body, first := io.Pipe()
			c := m.Transport(roundTripFunc(func(r *http.Request) (*http.Response, error) {
				time.Sleep(2 * time.Second)
				go func() {
					time.Sleep(5 * time.Second)
					io.WriteString(first, "x")
					first.Close()
				}()
				h := http.Header{"Cache-Control": {"no-store"}}
				if age != "" {
					h.Set("Age", age)
				}
				return &http.Response{StatusCode: 200, Header: h, Body: body, ContentLength: 1, Request: r}, nil
			}))
			resp, err := c.RoundTrip(httptest.NewRequest("GET", "http://o.test/x", nil))
			if err != nil {
				t.Fatal(err)
			}
			io.ReadAll(resp.Body)
			if want := map[string]string{"3": "10"}[age]; resp.Header.Get("Age") != want {
				t.Errorf("Age %q is passed on as %q, want %q", age, resp.Header.Get("Age"), want)
			}
		}
	})
}
