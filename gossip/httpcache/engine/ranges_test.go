package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRanges checks that a Range of an object that is not stored comes from a sibling that has the
// object, or fills the cache, without further requests to the origin.
func TestRanges(t *testing.T) {
	rnd := rand.NewChaCha8([32]byte{1})
	big := make([]byte, 40<<20)
	rnd.Read(big)
	const five = 5 << 20
	const deep = "4000000-4000009"
	for name, c := range map[string]struct {
		cc      string
		size    int
		ignores bool // the origin knows no Range
		held    bool // by a sibling, as a whole
		ranges  []string
		most    int // requests to the origin
		bytes   int // of bodies from it, at most, in MiB
	}{
		"at the beginning, five times":    {"max-age=60", five, false, false, []string{"0-9", "0-9", "0-9", "5-20", "100000-"}, 5, 5},
		"deep within":                     {"max-age=60", five, false, false, []string{deep, deep, "0-9", "1-"}, 5, 5},
		"the end":                         {"max-age=60", five, false, false, []string{"-10", "-10", "0-9"}, 2, 2},
		"a sibling holds it":              {"max-age=60", five, false, true, []string{"0-9", "0-9", "0-9", "0-9", "0-9", deep, "-7"}, 0, 0},
		"a sibling holds it, deep":        {"max-age=60", five, false, true, []string{deep, "-5", deep}, 0, 0},
		"large, and a sibling holds it":   {"max-age=60", 20 << 20, false, true, []string{"0-9", "10-19", deep, "-7"}, 0, 0},
		"the origin ignores Range":        {"max-age=60", five, true, false, []string{"0-9", deep, "0-9", "-3"}, 1, 5},
		"the origin ignores Range, deep":  {"max-age=60", five, true, false, []string{deep, "0-9", deep}, 1, 5},
		"not to be shared":                {"no-store", five, false, false, []string{"0-9", "0-9", deep}, 4, 5},
		"large":                           {"max-age=60", 40 << 20, false, false, []string{"0-9", "10-19", deep, deep}, 2, 2},
		"large, and wanted from there on": {"max-age=60", 40 << 20, false, false, []string{"10-", "0-9"}, 40, 40},
		"several parts":                   {"max-age=60", five, false, false, []string{"0-1,5-6"}, 1, 5},
		"beyond the end":                  {"max-age=60", five, false, false, []string{"99999999-"}, 1, 0},
	} {
		if testing.Short() && c.size > 20<<20 {
			continue // with the race detector
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := big[:c.size]
				var sent atomic.Int64
				w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
					w.Header().Set("Cache-Control", c.cc)
					w.Header().Set("Etag", `"v"`)
					if c.ignores {
						r.Header.Del("Range")
					}
					http.ServeContent(&counting{w, &sent}, r, "x", time.Time{}, bytes.NewReader(body))
				})
				w.tune = func(c *peerConfig) { c.Store.MaxBytes = 256 << 20 }
				for _, peer := range []string{"a", "b"} {
					w.start(peer, t.TempDir())
				}
				defer w.close()
				if c.held {
					w.get("a", "/x")
					synctest.Wait()
				}
				before, sentBefore := w.origin.count(), sent.Load()
				for _, spec := range c.ranges {
					r := w.get("b", "/x", "Range: bytes="+spec)
					var first, last int
					var want string
					switch n, _ := fmt.Sscanf(spec, "%d-%d", &first, &last); {
					case strings.Contains(spec, ","), first > c.size:
						want = r.body
					case first < 0:
						want = string(body[c.size+first:])
					case n == 1:
						want = string(body[first:])
					default:
						want = string(body[first : last+1])
					}
					if r.err != nil || r.body != want || want != string(body) && r.StatusCode == 200 && !strings.Contains(spec, ",") {
						t.Errorf("%s: %d, %d bytes, want %d: %v (%s)", spec, r.StatusCode, len(r.body), len(want), r.err, r.status())
					}
					synctest.Wait()
				}
				if n := w.origin.count() - before; n > c.most {
					t.Errorf("%d requests to the origin, want at most %d", n, c.most)
				}
				if sent := int(sent.Load() - sentBefore); sent > c.bytes<<20+1024 {
					t.Errorf("%d bytes from the origin, want at most %d MiB", sent, c.bytes)
				}
			})
		})
	}
}

// counting counts the bytes of bodies.
type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// TestHeadFromSibling checks that a HEAD for an object of a sibling causes no request to the
// origin.
func TestHeadFromSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, cached("0123456789"), "a", "b")
		defer w.close()
		w.get("a", "/x")
		synctest.Wait()
		for range 3 {
			r := w.do("b", "HEAD", "/x", "")
			if r.StatusCode != 200 || r.ContentLength != 10 || !strings.Contains(r.status(), "detail=sibling") {
				t.Errorf("HEAD: %d, %d bytes (%s)", r.StatusCode, r.ContentLength, r.status())
			}
		}
		if n := w.origin.count(); n != 1 {
			t.Errorf("%d requests to the origin", n)
		}
		if r := w.do("b", "HEAD", "/none", ""); r.StatusCode != 200 || w.origin.count() != 2 {
			t.Errorf("HEAD of an object that no peer has: %d, %d requests to the origin", r.StatusCode, w.origin.count())
		}
	})
}

// At most 64 fetches that no client waits for are under way, however many URLs clients request
// stale copies of. The others are fetched for a later request.
func TestUnaskedFetchesAreBounded(t *testing.T) {
	const urls, most = 100, 64
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, highest := 0, 0
		slow := false
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=1, stale-while-revalidate=600")
			w.Header().Set("Etag", `"v"`)
			if mu.Lock(); slow {
				now++
				highest = max(highest, now)
				mu.Unlock()
				time.Sleep(5 * time.Second)
				mu.Lock()
				now--
			}
			mu.Unlock()
			http.ServeContent(w, r, "x", time.Time{}, strings.NewReader("a body"))
		}, "a")
		defer w.close()
		ask := func() {
			for i := range urls {
				if r := w.get("a", fmt.Sprintf("/%d", i)); r.err != nil || r.StatusCode/100 != 2 {
					t.Errorf("%d: %d, %v", i, r.StatusCode, r.err)
				}
			}
		}
		ask()
		time.Sleep(2 * time.Second)
		mu.Lock()
		slow = true
		mu.Unlock()
		start := time.Now()
		ask()
		if took := time.Since(start); took > time.Second {
			t.Errorf("clients waited for %v", took)
		}
		time.Sleep(6 * time.Second)
		mu.Lock()
		if h := w.peers["a"]; highest != most || h.Background.Load() != most {
			t.Errorf("%d fetches at a time of %d, want %d", highest, h.Background.Load(), most)
		}
		mu.Unlock()
		ask()
		time.Sleep(6 * time.Second)
		if h := w.peers["a"]; h.Background.Load() < urls {
			t.Errorf("%d fetches in all for %d URLs", h.Background.Load(), urls)
		}
	})
}
