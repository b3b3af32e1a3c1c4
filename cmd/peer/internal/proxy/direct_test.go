package proxy

import (
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestDirectAnswers checks that a hit that is written directly to the connection has the same
// fields as one that net/http writes.
func TestDirectAnswers(t *testing.T) {
	for _, size := range []int{0, 1, 2000, 5000, 64 << 10, 300_000} {
		synctest.Test(t, func(t *testing.T) {
			body := strings.Repeat("x", size)
			w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
				h := w.Header()
				h.Set("Cache-Control", "max-age=600")
				h["X-Twice"] = []string{"1", "2"}
				h["Cache-Status"] = []string{"cdn; hit"}
				if n%2 == 0 {
					h["Content-Type"] = nil
				}
				if r.URL.Path == "/teapot" {
					w.WriteHeader(http.StatusTeapot)
				}
				io.WriteString(w, body)
			}, "a")
			defer w.close()
			for _, path := range []string{"/x", "/typed", "/teapot"} {
				for _, method := range []string{"GET", "HEAD", "PART"} {
					w.get("a", path)
					time.Sleep(7 * time.Second)
					fields := "Range: none"
					if method == "PART" {
						method, fields = "GET", "Range: bytes=1-70000"
					}
					direct := w.do("a", method, path, "", fields)
					usual := w.do("a", method, path, "", fields, "Connection: close")
					if usual.Close && usual.Header.Get("Connection") == "close" {
						usual.Header.Del("Connection")
					}
					if direct.StatusCode != usual.StatusCode || direct.body != usual.body || direct.ContentLength != usual.ContentLength ||
						direct.err != nil || !maps.EqualFunc(direct.Header, usual.Header, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
						t.Errorf("%s %s of %d bytes: direct %d, %d bytes, %v, %v\nusual %d, %d bytes, %v", method, path, size,
							direct.StatusCode, len(direct.body), direct.err, direct.Header, usual.StatusCode, len(usual.body), usual.Header)
					}
				}
			}
		})
	}
}
