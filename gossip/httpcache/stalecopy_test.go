package httpcache

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// unconditional is an origin that sends its first answer whole, with another freshness for the
// second, and all others as o does, whatever the conditions.
func unconditional(o *faulty, fields string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		if n > 0 {
			o.serve(w, r, n-1)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "max-age=1"+fields)
		h.Set("ETag", `"a"`)
		h.Set("Content-Length", fmt.Sprint(len(o.body)))
		w.Write(o.body)
	}
}

// An origin answers a validation with the whole body, which breaks off each time. The stale copy
// supplies the rest: with the same strong validator it has the same bytes.
func TestStaleCopyGoesOn(t *testing.T) {
	body, cases := content(1, 200_000), 0
	for _, fault := range []string{"cut", "stall", "crawl"} {
		for _, at := range []int{0, 1, 65_536, 199_999} {
			for _, cc := range []string{"X-None: 1", "Cache-Control: no-cache", "Cache-Control: no-store"} {
				for _, clients := range []int{1, 3} {
					name := fmt.Sprintf("%s at %d, %q, %d clients", fault, at, cc, clients)
					if fault == "crawl" && (clients == 1 || cc != "X-None: 1" || at == 199_999) {
						continue // an origin may take its time for a client of its own
					}
					if !inShort(&cases, 5) {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						o := &faulty{body: body, fault: fault, at: at, times: 1000, tag: `"a"`}
						w := newCluster(t, unconditional(o, ""), "a")
						defer w.close()
						w.get("a", "/x")
						time.Sleep(5 * time.Second)
						if fault == "crawl" {
							w.origin.serve = func(rw http.ResponseWriter, r *http.Request, n int) {
								if r.URL.Path == "/pace" {
									rw.Write(body[:1000])
									return
								}
								o.serve(rw, r, 0)
							}
							w.learnPace("a", "/pace")
						}
						var all sync.WaitGroup
						for range clients {
							all.Go(func() {
								start := time.Now()
								r := w.get("a", "/x", cc)
								if took := time.Since(start); r.err != nil || r.body != string(body) || took > 25*time.Second {
									t.Errorf("%s: status %d, %d bytes, %v after %v; %s", name, r.StatusCode, len(r.body), r.err, took, r.status())
								}
							})
						}
						all.Wait()
					})
				}
			}
		}
	}
}

// withOthers starts the peers a and b, which may send each other lookups for stale copies.
func withOthers(t *testing.T, serve func(http.ResponseWriter, *http.Request, int)) *cluster {
	w := newCluster(t, serve)
	for name, other := range map[string]string{"a": "b", "b": "a"} {
		w.tune = func(c *peerConfig) { c.Others = w.others(other) }
		w.start(name, t.TempDir())
	}
	return w
}

// A sibling's stale copy supplies the rest once the origin has shown that it does not.
func TestSiblingsStaleCopyGoesOn(t *testing.T) {
	body := content(1, 200_000)
	for _, fault := range []string{"cut", "stall"} {
		for _, at := range []int{0, 1, 65_536, 199_999} {
			for _, cc := range []string{"X-None: 1", "Cache-Control: no-store"} {
				for _, clients := range []int{1, 3} {
					synctest.Test(t, func(t *testing.T) {
						o := &faulty{body: body, fault: fault, at: at, times: 1000, tag: `"a"`}
						w := withOthers(t, unconditional(o, ""))
						defer w.close()
						w.get("b", "/x")
						time.Sleep(5 * time.Second)
						var all sync.WaitGroup
						for range clients {
							all.Go(func() {
								r, err := w.try("a", "GET", "/x", "", cc)
								if err != nil || r.err != nil || r.body != string(body) {
									t.Errorf("%s at %d, %q, %d clients: %v, %d bytes, %v; %s", fault, at, cc, clients, err, len(r.body), r.err, r.status())
								}
							})
						}
						all.Wait()
					})
				}
			}
		}
	}
}

// A client whose source crawls continues with what another fetch of the same object has stored
// meanwhile, even if it is the only one that waits for that source.
func TestCrawlingIsLeftForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := content(1, 200_000)
		o := &faulty{body: body, fault: "crawl", at: 1000, tag: `"a"`}
		w := newCluster(t, o.serve, "a")
		defer w.close()
		var all sync.WaitGroup
		start := time.Now()
		all.Go(func() {
			if r := w.get("a", "/x"); r.err != nil || r.body != string(body) || time.Since(start) > 5*time.Second {
				t.Errorf("%d bytes, %v after %v", len(r.body), r.err, time.Since(start))
			}
		})
		time.Sleep(2 * time.Second)
		if r := w.get("a", "/x", "Cache-Control: no-cache"); r.err != nil || r.body != string(body) {
			t.Errorf("another: %d bytes, %v", len(r.body), r.err)
		}
		all.Wait()
		if n := w.peers["a"].BodiesTakenOver.Load(); n != 1 {
			t.Errorf("%d bodies were taken over, want 1", n)
		}
	})
}

// A stale copy that may have other bytes supplies no rest: one with another or a weak validator, or
// in another coding.
func TestStaleCopyIsNotMixed(t *testing.T) {
	body, other := content(1, 200_000), content(2, 200_000)
	for _, now := range []struct{ name, tag, fields string }{
		{"another version", `"b"`, ""}, {"weak", `W/"a"`, ""}, {"no validator", "", ""}, {"another coding", `"a"`, "Content-Encoding: br"},
		{"another version under the same tag", `"a"`, ""},
	} {
		for _, at := range []int{0, 1, 100_000} {
			for _, holder := range []string{"a", "b"} {
				if holder == "b" && now.tag == `"a"` && now.fields == "" {
					continue // who asks for a part must believe the tag
				}
				synctest.Test(t, func(t *testing.T) {
					o := &faulty{body: body, fault: "cut", at: at, times: 1000, tag: `"a"`}
					w := withOthers(t, unconditional(o, ""))
					defer w.close()
					w.get(holder, "/x")
					time.Sleep(5 * time.Second)
					o.body, o.tag, o.fields = other, now.tag, now.fields
					r, err := w.try("a", "GET", "/x", "")
					if at > 0 && (err != nil || r.err == nil || !strings.HasPrefix(string(other), r.body)) {
						t.Errorf("%s, cut at %d: status %d, %d bytes, %v, %v", now.name, at, r.StatusCode, len(r.body), err, r.err)
					}
					if at == 0 && holder == "a" && (err != nil || r.StatusCode != http.StatusOK || r.body != string(body)) {
						t.Errorf("%s, cut at %d: status %d, %d bytes, %v, %v; nothing was sent, so the stale copy may stand in", now.name, at, r.StatusCode, len(r.body), err, r.err)
					}
				})
			}
		}
	}
}

// If the origin replaces an object by a response that must not be stored, the old copy is kept
// until that response is complete: if it breaks off, the stale copy can still be served.
func TestReplacedWhenWhole(t *testing.T) {
	for _, breaks := range []string{"", "at once", "in the middle"} {
		for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusNoContent} {
			if status == http.StatusNoContent && breaks != "" {
				continue
			}
			t.Run(fmt.Sprint(status, " ", breaks), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					down := false
					w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
						h := rw.Header()
						if n == 0 {
							h.Set("Cache-Control", "max-age=1, stale-if-error=600")
							fmt.Fprint(rw, "old")
							return
						}
						if down {
							panic(http.ErrAbortHandler)
						}
						h.Set("Cache-Control", "no-store")
						if status != http.StatusNoContent {
							h.Set("Content-Length", "100000")
						}
						rw.WriteHeader(status)
						rw.(http.Flusher).Flush()
						if breaks == "at once" {
							panic(http.ErrAbortHandler)
						}
						if status != http.StatusNoContent {
							rw.Write(content(1, 50_000))
							rw.(http.Flusher).Flush()
							if breaks != "" {
								panic(http.ErrAbortHandler)
							}
							rw.Write(content(1, 50_000))
						}
					}, "a")
					defer w.close()
					w.get("a", "/x")
					time.Sleep(5 * time.Second)
					r := w.get("a", "/x")
					if breaks == "at once" && r.body != "old" {
						t.Errorf("%d %q; %s", r.StatusCode, r.body, r.status())
					}
					down = true
					r = w.get("a", "/x")
					if kept := r.body == "old"; kept != (breaks != "") {
						t.Errorf("the copy is kept: %v; %d %q; %s", kept, r.StatusCode, r.body, r.status())
					}
				})
			})
		}
	}
}
