package engine

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// If the origin replaces an object by a response that must not be stored, the old copy is not served any more, even in
// place of an error.
func TestReplacedByUnstored(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusNoContent} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					h := rw.Header()
					switch n {
					case 0:
						h.Set("Cache-Control", "max-age=1, stale-if-error=600")
						fmt.Fprint(rw, "old")
					case 1:
						h.Set("Cache-Control", "no-store")
						rw.WriteHeader(status)
						if status != http.StatusNoContent {
							rw.Write(content(1, 100_000))
						}
					default:
						panic(http.ErrAbortHandler)
					}
				}, "a")
				defer w.close()
				w.get("a", "/x")
				time.Sleep(5 * time.Second)
				w.get("a", "/x")
				if r := w.get("a", "/x"); r.body == "old" {
					t.Errorf("%d %q; %s", r.StatusCode, r.body, r.status())
				}
			})
		})
	}
}
