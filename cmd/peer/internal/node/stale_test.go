package node

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOriginDown: while the origin is down, every peer answers with a response that any of them may
// still serve stale, and with no other. The number of requests between peers is bounded.
func TestOriginDown(t *testing.T) {
	for _, peers := range []int{2, 5, 20} {
		if peers > 5 && testing.Short() {
			continue // with the race detector
		}
		synctest.Test(t, func(t *testing.T) {
			v := newVirtual(t, peers, nil)
			defer v.stop()
			var down atomic.Int64 // 1 = it breaks off, 2 = it answers 503
			v.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch down.Load() {
				case 1:
					panic(http.ErrAbortHandler)
				case 2:
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				cc := "max-age=10, stale-if-error=600"
				switch r.URL.Path[1] {
				case 's':
					cc = "s-maxage=10, stale-if-error=600"
				case 'm':
					cc = "max-age=10, must-revalidate"
				}
				w.Header().Set("Cache-Control", cc)
				w.Header().Set("Vary", "Accept-Language")
				fmt.Fprint(w, r.URL.Path)
			})
			pause(3 * time.Second)
			paths := []string{"/x", "/s", "/m", "/y", "/z"}
			for _, path := range paths {
				v.send("GET", 0, path)
			}
			pause(time.Minute)
			down.Store(1)
			asked := func() (n uint64) {
				for _, node := range v.nodes {
					n += node.Status().Traffic.SiblingRequests
				}
				return n
			}
			answered, before := 0, asked()
			for i := range v.nodes {
				for _, path := range []string{"/x", "/s"} {
					if got, status := v.send("GET", i, path); got == path && strings.Contains(status, "stale-if-error") {
						answered++
					} else {
						t.Errorf("p%d: %s: %q (%s)", i, path, got, status)
					}
				}
			}
			t.Logf("%d of %d requests answered, by %d questions", answered, 2*peers, asked()-before)
			before = asked()
			for range 50 {
				if got, status := v.send("GET", peers-1, "/m"); !strings.Contains(got, "origin") {
					t.Errorf("what must be validated is served: %q (%s)", got, status)
				}
			}
			if n := asked() - before; n >= uint64(peers) {
				t.Errorf("%d questions for what nobody may serve, want at most %d", n, peers-1)
			}
			down.Store(2)
			if got, status := v.send("GET", 1, "/y"); got != "/y" {
				t.Errorf("with a 503, %q (%s)", got, status)
			}
			down.Store(0)
			if _, status := v.send("GET", 1, "/z"); strings.Contains(status, "stale") {
				t.Errorf("with the origin up, %s", status)
			}
		})
	}
}
