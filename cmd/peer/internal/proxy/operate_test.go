package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/sibling"
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

// besides is a locator that also names a cache outside the cluster for every object.
type besides struct{ locator }

func (besides) CandidatesFor(dst []sibling.Candidate, _ *sibling.LookupRequest) []sibling.Candidate {
	return append(dst, sibling.Candidate{Peer: "squid", Service: "squid:3128"})
}

// TestSoftPurgeOfSiblingsCopy: a copy that a sibling gave is validated after a soft purge, although it
// is fresh by its own header for longer than siblings are believed.
func TestSoftPurgeOfSiblingsCopy(t *testing.T) {
	for name, after := range map[string]time.Duration{"believed": time.Second, "believed no longer": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				down := false
				w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
					if down {
						w.WriteHeader(http.StatusInternalServerError)
						return
					}
					row{origin: []scripted{{fields: `Cache-Control: max-age=3600 | ETag: "a"`}}}.serve(w, r, n)
				})
				w.tune = func(c *Config) { c.SiblingMaxAge = time.Minute }
				w.start("a", t.TempDir())
				w.start("b", t.TempDir())
				defer w.close()
				w.get("a", "/x")
				synctest.Wait()
				if got := w.get("b", "/x"); w.origin.count() != 1 {
					t.Fatalf("no copy of a sibling: %s", got.status())
				}
				time.Sleep(after)
				target, err := w.peers["b"].Target("http://"+originHost+"/x", invalidation.Identity)
				if err != nil {
					t.Fatal(err)
				}
				target.Soft = true
				if n := w.peers["b"].Purge(target); n != 1 {
					t.Errorf("Purge(%v) = %d, want 1", target, n)
				}
				down = true
				if got := w.get("b", "/x"); got.StatusCode != http.StatusInternalServerError {
					t.Errorf("with an error of the origin: %d, %s", got.StatusCode, got.status())
				}
				down = false
				if got := w.get("b", "/x"); got.StatusCode != http.StatusOK || w.origin.count() != 3 {
					t.Errorf("%d origin requests, status %d, %s", w.origin.count(), got.StatusCode, got.status())
				}
			})
		})
	}
}

// A cache outside the cluster knows no invalidation: its copy is taken if it is younger than the
// last one of the URL, by its Age.
func TestInvalidatedOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false, cached("new"))
		w.tune = func(c *Config) { c.Locator, c.Cluster = besides{c.Locator.(locator)}, told{w} }
		defer w.close()
		age := 0
		w.serve("squid:3128", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("X-Cache", "HIT from squid")
			rw.Header().Set("Cache-Control", "max-age=600")
			rw.Header().Set("Age", fmt.Sprint(age))
			io.WriteString(rw, "squid's")
		}))
		w.start("a", t.TempDir())
		for _, step := range []struct {
			after time.Duration
			age   int
			want  string
		}{{0, 100, "squid's"}, {0, 100, "new"}, {10 * time.Second, 100, "new"}, {10 * time.Second, 5, "squid's"}} {
			target, err := w.peers["a"].Target("http://"+originHost+"/x", invalidation.Identity)
			if err != nil {
				t.Fatal(err)
			}
			if step.want == "new" && step.after == 0 {
				w.peers["a"].Invalidated(target)
			}
			time.Sleep(step.after)
			w.peers["a"].Store().Delete(target.Name)
			age = step.age
			if got := w.get("a", "/x"); got.body != step.want {
				t.Errorf("%v after the invalidation, at age %d: %q (%s), want %q", step.after, age, got.body, got.status(), step.want)
			}
			synctest.Wait()
		}
	})
}

// ofURL is a cluster with one invalidation, of a URL.
type ofURL struct {
	told
	url string
	id  invalidation.ID
}

func (o ofURL) Concerning(identity string) ([]invalidation.ID, bool) {
	if engine.TargetOf(o.url).Matches(identity) {
		return []invalidation.ID{o.id}, true
	}
	return nil, true
}

// Where an invalidation applies to a URL with either scheme, a request to a sibling names it for both.
func TestInvalidationOfBothSchemes(t *testing.T) {
	one := invalidation.ID{Log: invalidation.Log{Origin: 1, Life: 2}, Sequence: 3}
	h := new(Handler)
	h.applied.Store(&appliedSettings{bySchemes: true})
	c := bothSchemes{ofURL{url: "http://a.test/x", id: one}, h}
	for url, want := range map[string]int{"http://a.test/x": 1, "https://a.test/x": 1, "https://a.test/y": 0, "http://b.test/x": 0} {
		if ids, ok := c.Concerning(engine.TargetOf(url).Name); len(ids) != want || !ok {
			t.Errorf("Concerning(%q) = %v, %v, want %d", url, ids, ok, want)
		}
	}
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
			verdict                 engine.Verdict
			reason                  string
			stored, asked           bool
		}{
			{"fresh", "a", "GET", base + "/x", nil, engine.WouldHit, "", true, false},
			{"elsewhere", "b", "GET", base + "/x", gzip, engine.WouldFetch, "uri-miss", false, true},
			{"reload", "a", "GET", base + "/x", http.Header{"Cache-Control": {"no-cache"}}, engine.WouldValidate, "request", true, false},
			{"credentials", "b", "GET", base + "/x", http.Header{"Authorization": {"x"}}, engine.WouldFetch, "uri-miss", false, false},
			{"only if cached", "b", "GET", base + "/x", http.Header{"Cache-Control": {"only-if-cached"}}, engine.WouldRefuse, "uri-miss", false, false},
			{"method", "a", "POST", base + "/x", nil, engine.WouldPass, "method", true, false},
			{"HEAD of nothing", "b", "HEAD", base + "/x", nil, engine.WouldPass, "uri-miss", false, false},
			{"condition", "a", "GET", base + "/x", http.Header{"If-Match": {"x"}}, engine.WouldPass, "bypass", true, false},
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
		if e, _, _ := w.peers["a"].Explain("GET", base+"/swr", nil); e.Verdict != engine.WouldHitStale || e.Stored[0].Listed {
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
