package proxy

import (
	"net/http"
	"testing"
	"testing/synctest"
)

// TestNoLoops checks that a lookup request is never passed on, whatever the digests say, and
// neither is a request that has come back.
func TestNoLoops(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, reverse, cached("origin"), "a", "b", "c")
			defer w.close()
			for _, p := range []string{"a", "b", "c"} {
				w.claim(p, "/x") // everybody lies
			}
			r := w.get("a", "/x")
			if r.body != "origin" || w.origin.count() != 1 {
				t.Errorf("%d %q, %d origin requests", r.StatusCode, r.body, w.origin.count())
			}
			if got := w.recorded(); got != "b:false-hit c:false-hit" {
				t.Errorf("recorded %q", got)
			}
			synctest.Wait()
			if n := w.peers["b"].Counters(); n.NotServedToSiblings != 1 || n.SiblingRequests != 0 || n.OriginRequests != 0 {
				t.Errorf("b: %+v", n)
			}
			if r := w.get("a", "/y", "Via: 1.1 b, 1.1 a"); r.StatusCode != http.StatusLoopDetected {
				t.Errorf("a request that came round: %d", r.StatusCode)
			}
		})
	}
}
