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
