package engine

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// first is a coalescer that names one peer as the fetcher to all other peers.
type first struct {
	*cluster
	self, peer string
}

func (first) Joined()                              {}
func (first) Served(http.Header)                   {}
func (first) Invalidated(invalidation.Target, int) {}

func (f first) InFlight(context.Context, string, time.Duration) (sibling.Peer, bool) {
	if f.self == f.peer {
		return sibling.Peer{}, false
	}
	return sibling.Peer{Name: f.peer, Addr: f.digests.address(f.peer)}, true
}

// A peer waits for another peer that is fetching the object.
func TestWaitForFetcher(t *testing.T) {
	const think = 300 * time.Millisecond
	after := func(h func(http.ResponseWriter, *http.Request, int)) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, r *http.Request, n int) { time.Sleep(think); h(w, r, n) }
	}
	for name, tt := range map[string]struct {
		origin   func(http.ResponseWriter, *http.Request, int)
		fetches  int
		took     time.Duration // of b, which comes 100 ms after a, at most
		recorded string
	}{
		"handed over":      {after(cached("x")), 1, think - 90*time.Millisecond, "a:hit"},
		"not to be shared": {after(answers(0, "Cache-Control: private")), 2, 2*think - 90*time.Millisecond, ""},
		"longer than that": {func(w http.ResponseWriter, r *http.Request, n int) { time.Sleep(5 * time.Second); cached("x")(w, r, n) }, 2, 7700 * time.Millisecond, ""},
		"the fetcher fails": {after(func(w http.ResponseWriter, r *http.Request, n int) {
			if n < 2 { // the transport sends it twice
				panic(http.ErrAbortHandler)
			}
			cached("x")(w, r, n)
		}), 3, 3*think - 90*time.Millisecond, ""},
		"while it arrives": {func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			for range 3 {
				io.WriteString(w, strings.Repeat("x", 1000))
				w.(http.Flusher).Flush()
				time.Sleep(900 * time.Millisecond)
			}
		}, 1, 3 * time.Second, "a:hit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, tt.origin)
				defer w.close()
				for _, peer := range []string{"a", "b"} {
					w.tune = func(c *peerConfig) { c.Coalescer = first{w, peer, "a"} }
					w.start(peer, t.TempDir())
				}
				var all sync.WaitGroup
				all.Go(func() { w.try("a", "GET", "/x", "") })
				time.Sleep(100 * time.Millisecond)
				start := time.Now()
				if r := w.get("b", "/x"); r.StatusCode != 200 || r.err != nil {
					t.Errorf("%d, %v, %q", r.StatusCode, r.err, r.status())
				}
				if took := time.Since(start); took > tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				all.Wait()
				synctest.Wait()
				if got := w.recorded(); w.origin.count() != tt.fetches || got != tt.recorded {
					t.Errorf("%d origin fetches, want %d; recorded %q", w.origin.count(), tt.fetches, got)
				}
				shared := uint64(max(0, 2-tt.fetches)) // one that brought nothing is not counted: that is the fetch's doing
				if b := w.peers["b"]; b.siblings.Stats().Asked != shared || b.siblings.Stats().Hits != shared || b.siblings.Stats().FetchesShared != shared ||
					b.outcome(SiblingHit) != int(shared) {
					t.Errorf("%+v, %d sibling hits", b.siblings.Stats(), b.outcome(SiblingHit))
				}
			})
		})
	}
}
