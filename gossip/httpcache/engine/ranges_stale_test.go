package engine

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A range is requested of an object whose stored copy is stale, and the origin's new version is for one client alone, or too
// long to be fetched for a range. The client gets its range after two requests to the origin at most.
func TestRangeOfStaleObject(t *testing.T) {
	for _, c := range []struct {
		name, control string
		length        int
	}{
		{"not to be stored", "private", 100},
		{"large", "max-age=60", unattendedRest + 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changed, requests := false, 0
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					requests++
					rw.Header().Set("Cache-Control", "max-age=1")
					body := "the first version of it"
					if changed {
						rw.Header().Set("Cache-Control", c.control)
						body = strings.Repeat("b", c.length)
					}
					rw.Header().Set("ETag", fmt.Sprintf("%q", body[:1]))
					http.ServeContent(rw, r, "", time.Time{}, strings.NewReader(body))
				}, "a")
				defer w.close()
				w.get("a", "/x")
				time.Sleep(2 * time.Second)
				changed, requests = true, 0
				if r := w.get("a", "/x", "Range: bytes=3-5"); r.StatusCode != http.StatusPartialContent || r.body != "bbb" || requests > 2 {
					t.Errorf("%d, %q after %d requests to the origin; %s", r.StatusCode, r.body, requests, r.status())
				}
			})
		})
	}
}
