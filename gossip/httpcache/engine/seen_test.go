package engine

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// What the origin has shown a client of one peer is not undone by the copy of another: after a reload, a HEAD or a 304
// that brings news, this peer's clients get no older version, though a sibling has one that is fresh.
func TestNeverOlderThanSeen(t *testing.T) {
	for name, c := range map[string]struct {
		method, fields, control string // of the request that brings news, and of the origin's new answers
		tagged                  bool
	}{
		"a reload of what is private now":    {"GET", "Cache-Control: no-cache", "private", true},
		"of what has no lifetime":            {"GET", "Cache-Control: no-cache", "max-age=0", true},
		"of what must not be stored":         {"GET", "Cache-Control: no-cache", "no-store", false},
		"a client that wants nothing stored": {"GET", "Cache-Control: no-store, no-cache", "max-age=600", true},
		"a HEAD":                             {"HEAD", "Cache-Control: no-cache", "max-age=600", true},
		"a reload that is stored":            {"GET", "Cache-Control: no-cache", "max-age=600", false},
		"one by max-age":                     {"GET", "Cache-Control: max-age=0", "max-age=600", true},
	} {
		for _, wait := range []time.Duration{0, 5 * time.Second} { // Date has whole seconds
			if wait == 0 && !c.tagged {
				continue // it may be the same
			}
			t.Run(fmt.Sprint(name, " after ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					news := false
					w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
						h, version := rw.Header(), "old"
						h.Set("Cache-Control", "max-age=600")
						if news {
							version = "new"
							h.Set("Cache-Control", c.control)
						}
						if c.tagged {
							h.Set("Etag", `"`+version+`"`)
						}
						io.WriteString(rw, version)
					}, "a", "b")
					defer w.close()
					w.get("b", "/x")
					synctest.Wait()
					if r := w.get("a", "/x"); r.body != "old" {
						t.Fatal(r.body)
					}
					news = true
					time.Sleep(wait)
					w.do("a", c.method, "/x", "", c.fields)
					w.peers["a"].store.Delete("GET http://" + originHost + "/x") // it may be evicted at any time
					if r := w.get("a", "/x"); r.body != "new" {
						t.Errorf("%q; %s", r.body, r.status())
					}
					if r := w.get("b", "/x"); r.body != "old" { // which has heard nothing
						t.Errorf("b has %q; %s", r.body, r.status())
					}
				})
			})
		}
	}
}
