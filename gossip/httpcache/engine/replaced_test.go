package engine

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

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
