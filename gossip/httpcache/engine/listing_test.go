package engine

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// TestFilterMirrorsStore has clients fetch, validate, invalidate and purge concurrently, with a
// store too small for everything, and then compares the counting filter with the objects that the
// store advertises.
func TestFilterMirrorsStore(t *testing.T) {
	const seed = 42
	synctest.Test(t, func(t *testing.T) {
		held, err := digest.NewSet(digest.Geometry{Bits: 1 << 20, Hashes: 1, Seed: seed}, 1)
		if err != nil {
			t.Fatal(err)
		}
		var refused int
		var mu sync.Mutex
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", n%7*3))
			w.Header().Set("ETag", `"a"`)
			switch {
			case n%3 == 0:
				w.Header().Set("Vary", "X-V")
			case n%5 == 0:
				w.Header().Set("Vary", "Accept-Encoding")
			}
			if r.Method != "GET" {
				return
			}
			if r.Header.Get("If-None-Match") != "" && n%2 == 0 {
				w.WriteHeader(304)
				return
			}
			io.WriteString(w, strings.Repeat("x", n%40*1000))
		})
		w.tune = func(c *peerConfig) {
			c.Store.MaxBytes = 2 << 20
			c.Advertise = func(id string) { held.Retain(digest.KeyOfString(seed, id)) }
			c.Withdraw = func(id string) {
				if !held.Release(digest.KeyOfString(seed, id)) {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			}
		}
		h := w.start("a", t.TempDir())
		defer w.close()
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() { w.disturb(rand.New(rand.NewPCG(uint64(g), 1))) })
		}
		wg.Wait()
		synctest.Wait()
		st := h.store.Stats()
		any := map[string]bool{} // what responses are advertised as besides: any variant of their URL
		for id := range h.store.Keys() {
			if o, _ := h.store.Peek(id); !o.Listed() {
				continue
			}
			ids := []string{id}
			if url, fields := rfc9111.SplitIdentity(id); len(fields) > 0 && !rfc9111.AlwaysGuessed(fields) && !rfc9111.IsSlice(id) {
				ids = append(ids, "GET "+url+"\n*")
				any[url] = true
			}
			for _, id := range ids {
				if !held.Has(digest.KeyOfString(seed, id)) {
					t.Errorf("%q is listed and the filter denies it", id)
				}
			}
		}
		if held.Len() != st.Listed+len(any) || len(any) == 0 || refused != 0 {
			t.Errorf("the filter holds %d keys, the store lists %d with %d second keys; %d removals were refused", held.Len(), st.Listed, len(any), refused)
		}
		if st.Evictions == 0 || st.Listed == 0 || st.Listed == st.Objects {
			t.Errorf("the test shows little: %+v", st)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := held.Len(); n != 0 {
			t.Errorf("%d keys are left in the filter when all is stale", n)
		}
	})
}

func (w *cluster) disturb(r *rand.Rand) {
	for range 120 {
		path := fmt.Sprint("/", r.IntN(150))
		switch r.IntN(12) {
		case 0:
			w.do("a", "PUT", path, "new")
		case 1:
			w.peers["a"].Purge(TargetOf("http://" + originHost + path))
		case 2:
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		case 3:
			w.get("a", path, "Cache-Control: no-cache")
		default:
			if got := w.get("a", path, fmt.Sprint("X-V: ", r.IntN(2))); got.err != nil || got.StatusCode != 200 {
				w.t.Errorf("%s: %d %v", path, got.StatusCode, got.err)
			}
		}
	}
}
