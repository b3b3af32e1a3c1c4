package engine

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowly sends a body in ten pieces, 0.9 s apart, or breaks off in the middle.
func slowly(fields string, breakAt int) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		name, value, _ := strings.Cut(fields, ": ")
		w.Header().Set(name, value)
		for i := range 10 {
			if i == breakAt {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, strings.Repeat("x", 20_000))
			w.(http.Flusher).Flush()
			time.Sleep(900 * time.Millisecond)
		}
	}
}

// A body that takes long is advertised while it arrives, and siblings read it from there at the
// same time: the cluster fetches it once.
func TestArrivingIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, slowly("Cache-Control: max-age=60", -1), "a", "b", "c")
		defer w.close()
		var all sync.WaitGroup
		for i, peer := range []string{"a", "b", "c"} {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 2 * time.Second)
				if i > 0 && !slices.Contains(slices.Collect(w.peers["a"].Advertised()), "GET http://"+originHost+"/x") {
					t.Error("a does not list it")
				}
				start := time.Now()
				r := w.get(peer, "/x")
				if r.err != nil || r.body != strings.Repeat("x", 200_000) {
					t.Errorf("%s: %d bytes, %v", peer, len(r.body), r.err)
				}
				if left := 10*time.Second - time.Duration(i)*2*time.Second; time.Since(start) > left+100*time.Millisecond {
					t.Errorf("%s waited %v, want %v", peer, time.Since(start), left)
				}
				if want := "a; hit; ttl=58; detail=arriving, b; fwd=uri-miss; fwd-status=200; stored; detail=sibling"; peer == "b" && r.status() != want {
					t.Errorf("b: %q, want %q", r.status(), want)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if n := w.origin.count(); n != 1 {
			t.Errorf("%d origin requests", n)
		}
		w.digests.mu.Lock()
		defer w.digests.mu.Unlock()
		for peer, listed := range w.digests.listed {
			if n := listed["GET http://"+originHost+"/x"]; n != 1 {
				t.Errorf("%s lists it %d times", peer, n)
			}
		}
	})
}

// Whenever a peer makes its digest anew, that has what the old one has: what is stored and what has been arriving for
// long enough, and nothing that has just begun.
func TestAdvertisedIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, slowly("Cache-Control: max-age=60", -1), "a")
		defer w.close()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 1337 * time.Millisecond)
				w.get("a", fmt.Sprint("/", i))
			})
		}
		most := 0
		for range 250 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			got := slices.Compact(slices.Sorted(w.peers["a"].Advertised()))
			var want []string
			w.digests.mu.Lock()
			for id, n := range w.digests.listed["a"] {
				if n > 0 {
					want = append(want, id)
				}
			}
			w.digests.mu.Unlock()
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("Advertised() = %q, and the digest has %q", got, want)
				break
			}
			most = max(most, len(want))
		}
		if most < 10 {
			t.Errorf("at most %d were advertised", most)
		}
		all.Wait()
	})
}

// A body that breaks off is finished from another source, also for siblings that read it while it
// arrives.
func TestArrivingBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
			at := 5
			if n > 0 {
				at = -1
			}
			slowly("Cache-Control: max-age=60", at)(rw, r, n)
		}, "a", "b")
		defer w.close()
		var all sync.WaitGroup
		for i, peer := range []string{"a", "b"} {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 2 * time.Second)
				if r := w.get(peer, "/x"); r.err != nil || r.body != strings.Repeat("x", 200_000) {
					t.Errorf("%s: %d bytes, %v", peer, len(r.body), r.err)
				}
			})
		}
		all.Wait()
		time.Sleep(10 * time.Second)
		if n := w.origin.count(); n > 3 {
			t.Errorf("%d origin requests: one that broke off and at most one for each peer", n)
		}
		if a := w.peers["a"]; a.BodiesResumed.Load() != 1 || a.BodiesCut.Load() != 0 {
			t.Errorf("%d bodies resumed, %d cut", a.BodiesResumed.Load(), a.BodiesCut.Load())
		}
	})
}

// A body that arrives fast, or must not be advertised at all, is not advertised while it arrives.
func TestArrivingIsNotListed(t *testing.T) {
	for fields, after := range map[string]time.Duration{
		"Cache-Control: max-age=60":                             200 * time.Millisecond,
		"Cache-Control: private, max-age=60":                    3 * time.Second,
		"Cache-Control: max-age=60, no-cache":                   3 * time.Second,
		"Cache-Control: max-age=60, stale-if-error=0, no-store": 3 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, slowly(fields, -1), "a", "b")
			defer w.close()
			got := make(chan int)
			go func() { got <- len(w.get("a", "/x").body) }()
			time.Sleep(after)
			if w.digests.lists("a", "GET http://"+originHost+"/x") {
				t.Errorf("%s: listed after %v", fields, after)
			}
			if n := <-got; n != 200_000 {
				t.Errorf("%s: %d bytes", fields, n)
			}
		})
	}
}
