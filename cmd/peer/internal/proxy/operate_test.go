package proxy

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
)

// A sibling that was not purged does not bring purged objects back, whether they were purged by URL
// or by prefix, and fetches under way are not stored.
func TestPurgedStaysPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
			if strings.HasSuffix(r.URL.Path, "/slow") {
				<-release
			}
			cached("x")(w, r, n)
		}, "a", "b")
		defer w.close()
		w.get("a", "/dir/x")
		synctest.Wait()
		w.get("b", "/dir/x") // from a
		synctest.Wait()
		go w.get("a", "/dir/slow")
		time.Sleep(time.Second)
		if w.origin.count() != 2 {
			close(release)
			t.Fatalf("%d origin requests", w.origin.count())
		}
		if n, err := purge(w.peers["a"], "http://"+originHost+"/dir/", true); n != 1 || err != nil {
			t.Errorf("PurgePrefix = %d, %v", n, err)
		}
		close(release)
		synctest.Wait()
		if r := w.get("a", "/dir/x"); w.origin.count() != 3 || strings.Contains(r.status(), "sibling") {
			t.Errorf("after the purge: %d origin requests, %s", w.origin.count(), r.status())
		}
		if w.get("a", "/dir/slow"); w.origin.count() != 4 {
			t.Errorf("a response is stored whose prefix was purged during its fetch")
		}
		w.get("b", "/other")
		synctest.Wait()
		if r := w.get("a", "/other"); !strings.Contains(r.status(), "detail=sibling") {
			t.Errorf("outside the prefix: %s", r.status())
		}
	})
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
			if strings.HasSuffix(r.URL.Path, "/swr") {
				w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=60")
				w.Header().Set("Etag", `"e"`)
				return
			}
			cached("xyz")(w, r, n)
		}, "a", "b")
		defer w.close()
		w.get("a", "/x")
		w.get("a", "/swr")
		time.Sleep(20 * time.Second)
		base := "http://" + originHost
		gzip := http.Header{"Accept-Encoding": {"gzip"}}
		for _, c := range []struct {
			name, peer, method, url string
			header                  http.Header
			verdict                 cache.Verdict
			reason                  string
			stored, asked           bool
		}{
			{"fresh", "a", "GET", base + "/x", nil, cache.WouldHit, "", true, false},
			{"elsewhere", "b", "GET", base + "/x", gzip, cache.WouldFetch, "uri-miss", false, true},
			{"reload", "a", "GET", base + "/x", http.Header{"Cache-Control": {"no-cache"}}, cache.WouldValidate, "request", true, false},
			{"credentials", "b", "GET", base + "/x", http.Header{"Authorization": {"x"}}, cache.WouldFetch, "uri-miss", false, false},
			{"only if cached", "b", "GET", base + "/x", http.Header{"Cache-Control": {"only-if-cached"}}, cache.WouldRefuse, "uri-miss", false, false},
			{"method", "a", "POST", base + "/x", nil, cache.WouldPass, "method", true, false},
			{"HEAD of nothing", "b", "HEAD", base + "/x", nil, cache.WouldPass, "uri-miss", false, false},
			{"condition", "a", "GET", base + "/x", http.Header{"If-Match": {"x"}}, cache.WouldPass, "bypass", true, false},
		} {
			e, _, err := w.peers[c.peer].Explain(c.method, c.url, c.header)
			if err != nil || e.Verdict != c.verdict || e.Reason != c.reason || len(e.Stored) > 0 != c.stored || len(e.Identities) > 0 != c.asked {
				t.Errorf("%s: Explain = %+v, %v, want %s for %q", c.name, e, err, c.verdict, c.reason)
			}
		}
		e, _, _ := w.peers["a"].Explain("GET", base+"/x", nil)
		if s := e.Stored[0]; !s.Selected || s.Age != 20 || s.FreshFor != 40 || s.Bytes != 3 || !s.Listed || s.Status != 200 {
			t.Errorf("stored: %+v", s)
		}
		time.Sleep(time.Minute)
		if e, _, _ := w.peers["a"].Explain("GET", base+"/swr", nil); e.Verdict != cache.WouldHitStale || e.Stored[0].Listed {
			t.Errorf("stale while revalidate: %+v", e)
		}
		if _, _, err := w.peers["a"].Explain("GET", "/x", nil); err == nil || !strings.Contains(err.Error(), "not an absolute URL") {
			t.Errorf("a path to a forward proxy: %v", err)
		}
		if n := w.origin.count(); n != 2 {
			t.Errorf("explaining made %d origin requests", n-2)
		}
	})
}
