package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// TestDecisionsAreNoClients checks that the decision of rules is sent with a response to siblings,
// which have no such rules here, and never to clients, even where a 304 has revoked it.
func TestDecisionsAreNoClients(t *testing.T) {
	for name, decides := range map[string]bool{"a rule decides": true, "no rule decides": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
					w.Header().Set("Cache-Control", "max-age=5")
					w.Header().Set("Etag", `"1"`)
					if n == 0 && !decides { // as by a rule that there was
						w.Header().Set(rfc9111.ClusterControl, "max-age=100")
					}
					if r.Header.Get("If-None-Match") != "" {
						w.WriteHeader(http.StatusNotModified)
						return
					}
					w.Write([]byte("0123456789"))
				}, "b")
				defer w.close()
				life := 100 * time.Second
				if decides {
					w.tune = func(c *Config) { c.Rules = rules.Set{{Name: "1", MinTTL: &life}} }
				}
				w.start("a", t.TempDir())
				ask := func(peer, method, status string, fields ...string) {
					t.Helper()
					r := w.do(peer, method, "/x", "", fields...)
					synctest.Wait()
					if r.Header[rfc9111.ClusterControl] != nil || !strings.Contains(r.status(), status) {
						t.Errorf("%s at %s with %q: %v", method, peer, fields, r.Header)
					}
				}
				ask("a", "GET", "a; fwd=uri-miss")
				time.Sleep(10 * time.Second)
				for _, fields := range [][]string{nil, {"Range: bytes=2-3"}, {`If-None-Match: "1"`}} {
					ask("a", "GET", "a; hit", fields...)
					ask("a", "HEAD", "a; hit", fields...)
				}
				ask("b", "HEAD", "sibling")
				ask("b", "GET", "sibling")
				ask("b", "GET", "b; hit") // by the lifetime that a decided
				if n := w.origin.count(); n != 1 {
					t.Errorf("%d requests to the origin", n)
				}
				time.Sleep(life)
				for _, fields := range [][]string{{`If-None-Match: "1"`}, nil} {
					ask("a", "GET", "a; fwd=stale; fwd-status=304", fields...)
					ask("a", "GET", "a; hit", fields...)
					time.Sleep(life)
				}
				ask("a", "POST", "a; fwd=method")
			})
		})
	}
}

// A Content-Type that a rule removes is not guessed from the body instead.
func TestRemovedTypeStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Content-Type", "text/plain")
			if r.URL.Path == "/stored" {
				w.Header().Set("Cache-Control", "max-age=60")
			}
			io.WriteString(w, "<html>")
		})
		defer w.close()
		w.tune = func(c *Config) {
			c.Rules = rules.Set{{Name: "1", ResponseHeader: []rules.Field{{Name: "Content-Type", Op: '-'}}}}
		}
		w.start("a", t.TempDir())
		for _, path := range []string{"/stored", "/stored", "/passed"} {
			if r := w.get("a", path); r.Header["Content-Type"] != nil || r.body != "<html>" {
				t.Errorf("%s: %v", path, r.Header)
			}
			synctest.Wait()
		}
	})
}
