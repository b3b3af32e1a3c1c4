package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// lagging is a cluster in which one invalidation concerns every object, and only some members have applied it.
type lagging struct{ applied bool }

func (lagging) Invalidate(context.Context, ...invalidation.Target) error { return nil }
func (lagging) Concerning(string) ([]invalidation.ID, bool) {
	return []invalidation.ID{{Log: invalidation.Log{Origin: 9, Life: 9}, Sequence: 1}}, true
}
func (c lagging) Applied(...invalidation.ID) bool { return c.applied }

// A sibling answers another's request only if it has applied all invalidations that concern the object there.
func TestLaggingSibling(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(w http.ResponseWriter, _ *http.Request, n int) {
				w.Header().Set("Cache-Control", "max-age=60")
				io.WriteString(w, fmt.Sprint("version ", n))
			})
			defer w.close()
			w.tune = func(c *peerConfig) { c.Cluster = lagging{applied} }
			for _, peer := range []string{"a", "b"} {
				w.start(peer, t.TempDir())
			}
			w.get("a", "/x")
			time.Sleep(time.Second) // it is advertised
			r, want := w.get("b", "/x"), "version 1"
			if applied {
				want = "version 0"
			}
			if r.body != want || strings.Contains(r.status(), "detail=sibling") != applied {
				t.Errorf("applied %v: %q, %q, want %q", applied, r.body, r.status(), want)
			}
		})
	}
}
