package engine

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An origin refuses a client because of a field of its own. What a sibling sends for it too slowly, others wait for as
// well: they get the rest from the origin, and the sibling is not blamed.
func TestRefusalOfOne(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := content(1, 100_000)
				refused := 0
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					if r.Header["X-Odd"] != nil {
						refused++
						rw.WriteHeader(http.StatusBadRequest)
						return
					}
					f.give(rw, r, body, len(body), true)
				}, "a")
				defer w.close()
				w.slowPeer("c", "", f, body, 0)
				var all sync.WaitGroup
				for i, fields := range [][]string{{"X-Odd: 1"}, nil} {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 50 * time.Millisecond)
						conn, resp, err := w.open("a", fields...)
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
							t.Errorf("%v: %d bytes of %d, %v", fields, len(got), len(body), err)
						}
					})
				}
				all.Wait()
				if n := w.peers["a"].SiblingsRefuted.Load(); refused == 0 || n != 0 {
					t.Errorf("%d requests were refused, %d answers of siblings refuted", refused, n)
				}
			})
		})
	}
}

// A sibling's answer is compared with what the origin gives to all, even if it refuses the client that asked for it.
func TestComparedThoughRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
			if r.Header["X-Odd"] != nil {
				rw.WriteHeader(http.StatusForbidden)
				return
			}
			cached("true")(rw, r, n)
		})
		w.tune = func(c *peerConfig) { c.Compare = 1 }
		w.start("a", t.TempDir())
		w.start("b", t.TempDir())
		defer w.close()
		w.get("a", "/x")
		synctest.Wait()
		if got := w.get("b", "/x", "X-Odd: 1"); got.body != "true" {
			t.Fatalf("not from a: %d, %s", got.StatusCode, got.status())
		}
		synctest.Wait()
		if n := w.peers["b"]; n.SiblingsCompared.Load() != 1 || n.SiblingsRefuted.Load() != 0 {
			t.Errorf("%d compared, %d refuted", n.SiblingsCompared.Load(), n.SiblingsRefuted.Load())
		}
	})
}

// A refusal that is itself what was stored is compared by one request.
func TestRefusalComparedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
			rw.Header().Set("Cache-Control", "max-age=60")
			rw.WriteHeader(http.StatusUnavailableForLegalReasons)
		})
		w.tune = func(c *peerConfig) { c.Compare = 1 }
		w.start("a", t.TempDir())
		w.start("b", t.TempDir())
		defer w.close()
		w.get("a", "/x")
		synctest.Wait()
		if got := w.get("b", "/x"); got.StatusCode != http.StatusUnavailableForLegalReasons {
			t.Fatalf("not from a: %d, %s", got.StatusCode, got.status())
		}
		synctest.Wait()
		if n := w.peers["b"]; n.SiblingsCompared.Load() != 1 || n.SiblingsRefuted.Load() != 0 || w.origin.count() != 2 {
			t.Errorf("%d compared, %d refuted, %d requests to the origin", n.SiblingsCompared.Load(), n.SiblingsRefuted.Load(), w.origin.count())
		}
	})
}

// An error that only the URL can have provoked is stored where it came, and not advertised: a sibling asks the origin, since
// its clients' requests are others.
func TestErrorOfItsURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "n=", n)
		}, "a", "b")
		defer w.close()
		get := func(peer, want string, fields ...string) {
			t.Helper()
			r := w.get(peer, "/x", fields...)
			if synctest.Wait(); r.StatusCode != http.StatusBadRequest || r.body != want {
				t.Errorf("at %s with %q: %d %q, want %q", peer, fields, r.StatusCode, r.body, want)
			}
		}
		get("a", "n=0", "Cookie: a=b")
		get("a", "n=1", "X-Forwarded-Host: a")
		get("a", "n=2")
		get("a", "n=2", "Cookie: a=b")
		get("b", "n=3")
		if w.digests.lists("a", "GET http://"+originHost+"/x") || w.recorded() != "" {
			t.Errorf("it is advertised; siblings: %s", w.recorded())
		}
	})
}
