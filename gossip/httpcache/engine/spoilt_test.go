package engine

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
)

// A sibling's body turns out to be wrong, or breaks off, before any of it was sent to a client whose answer is
// not stored. Nothing names its bytes, so no other source can go on with it. The client gets the origin's answer.
func TestNothingOfUnstoredAnswerCame(t *testing.T) {
	body := string(content(1, 4000))
	for name, give := range map[string]func(http.ResponseWriter){
		"wrong": func(w http.ResponseWriter) {
			w.Header().Set("Summarycache-Body", sumsOf(string(content(2, 4000))))
			w.Write([]byte(body))
		},
		"breaks off": func(w http.ResponseWriter) {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					rw.Header().Set("Cache-Control", "max-age=60")
					rw.Write([]byte(body))
				}, "a")
				defer w.close()
				w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Cache-Status", "c; hit; ttl=30")
					rw.Header().Set("Cache-Control", "max-age=60")
					rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
					give(rw)
				})
				w.claim("c", "/x")
				if got := w.get("a", "/x", "Cache-Control: no-store"); got.StatusCode != http.StatusOK || got.body != body || w.origin.count() != 1 {
					t.Errorf("%d, %d bytes, %v after %d requests to the origin; %s", got.StatusCode, len(got.body), got.err, w.origin.count(), got.status())
				}
			})
		})
	}
}
