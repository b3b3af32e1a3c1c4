package engine

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fresh returns a response that is fresh for a minute.
func fresh(body, field, value string) *http.Response {
	h := http.Header{"Cache-Control": {"max-age=60"}, field: {value}}
	return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// Many goroutines add and remove variants, and their index does not grow.
func TestManyVariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{Name: "c", Open: memstore.Open(64 << 10), Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			return fresh(r.Header.Get("X-V"), "Vary", "X-V"), nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				for i := range 1000 {
					r, to := httptest.NewRequest("GET", fmt.Sprint("http://o.test/", i%7), nil), httptest.NewRecorder()
					r.Header.Set("X-V", fmt.Sprint((i*7+worker)%90))
					if c.Serve(to, r); to.Body.String() != r.Header.Get("X-V") {
						t.Errorf("%s is answered by %q", r.Header.Get("X-V"), to.Body)
					}
				}
			})
		}
		all.Wait()
		synctest.Wait() // a body is read before it is stored
		n, stored := 0, len(slices.Collect(c.store.Keys()))
		for i := range 7 {
			n += len(c.variants.Identities(fmt.Sprint("http://o.test/", i)))
		}
		if n == 0 || n != stored {
			t.Errorf("%d variants are known, %d stored", n, stored)
		}
	})
}

// TestSoftPurgeAndClock: what a soft purge made stale stays so when the wall clock, by which what a former process
// stored ages, was ahead then and is put right.
func TestSoftPurgeAndClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, ahead := 0, time.Duration(0)
		c, err := New(Config{Name: "c", Open: memstore.Open(64 << 10), Now: func() time.Time { return time.Now().Add(ahead) },
			Transport: roundTripFunc(func(*http.Request) (*http.Response, error) {
				asked++
				return fresh("x", "Etag", `"1"`), nil
			})})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fetch := func() {
			c.Serve(httptest.NewRecorder(), httptest.NewRequest("GET", "http://o.test/x", nil))
			synctest.Wait()
		}
		fetch()
		c.clock++ // as after a restart
		ahead = 10 * time.Second
		soft := TargetOf("http://o.test/x")
		soft.Soft = true
		if n := c.Purge(soft); n != 1 {
			t.Fatalf("%d were made stale", n)
		}
		ahead = 0
		if fetch(); asked != 2 {
			t.Errorf("the origin was asked %d times, want 2: it was fresh again", asked)
		}
	})
}
