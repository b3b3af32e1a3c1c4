package engine

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// TestFirstVariant checks that the first URL of a host that varies is found at a sibling that has
// the variant of the client, and that no cookie is sent there.
func TestFirstVariant(t *testing.T) {
	for _, c := range []struct {
		vary, held, asked string
		found             bool
	}{
		{"Accept-Language", "Accept-Language: de", "Accept-Language: de", true},
		{"Accept-Language, Accept", "Accept-Language: de", "Accept-Language: de", true},
		{"Accept-Language", "Accept-Language: de", "Accept-Language: fr", false},
		{"Origin", "Origin: http://x", "Origin: http://x", true},
		{"Cookie", "Cookie: a=b", "Cookie: a=b", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Vary", c.vary)
				cached("x")(w, r, n)
			}, "a", "b")
			defer w.close()
			w.get("a", "/x", c.held)
			synctest.Wait()
			r := w.get("b", "/x", c.asked)
			synctest.Wait()
			if found := w.origin.count() == 1; found != c.found || strings.Contains(r.status(), "sibling") != c.found {
				t.Errorf("%+v: %s", c, r.status())
			}
			for _, id := range []string{"a", "b"} {
				w.peers[id].Purge(TargetOf("http://" + originHost + "/x"))
			}
			w.digests.mu.Lock()
			for peer, ids := range w.digests.listed {
				if len(ids) > 0 {
					t.Errorf("%s still lists %v", peer, ids)
				}
			}
			w.digests.mu.Unlock()
		})
	}
}
