package engine

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// TestShownIsNotUndone checks that no part or coding of the version of before is served once the origin has shown a client
// another one.
func TestShownIsNotUndone(t *testing.T) {
	forms := []string{"", "Accept-Encoding: up", "Range: bytes=0-9", "Range: bytes=25000-25009", "Range: bytes=2500000-2500009", "Range: bytes=-10"}
	for _, size := range []int{30_000, 3 << 20} {
		for _, show := range []string{"GET, Cache-Control: no-cache", "GET, Cache-Control: max-age=0", "HEAD, Cache-Control: no-cache",
			"GET, Cache-Control: no-cache, Accept-Encoding: up", "HEAD, Cache-Control: no-cache, Accept-Encoding: up",
			"GET, Cache-Control: no-cache, Range: bytes=0-9", "GET, Cache-Control: no-cache, If-None-Match: \"1\""} {
			for i, after := range forms {
				switch {
				case strings.Contains(after, "2500000") && size < 2_500_000:
					continue
				case testing.Short() && size > 30_000 && (i+len(show))%3 > 0: // with the race detector
					continue
				}
				t.Run(fmt.Sprintf("%d bytes, %s, then %s", size, show, after), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var version atomic.Int32
						origin := originFunc(func(r *http.Request) (*http.Response, error) {
							w := httptest.NewRecorder()
							v := fmt.Sprint(version.Load())
							for name, value := range map[string]string{"Cache-Control": "max-age=600", "Etag": `"` + v + `"`, "Content-Type": "text/plain", "Vary": "Accept-Encoding"} {
								w.Header().Set(name, value)
							}
							http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat(string('a'+version.Load()), size)))
							resp := w.Result()
							resp.Request = r
							return resp, nil
						})
						cfg := peerConfig{Config: Config{Name: "a", Open: memstore.Open(64 << 20), Transport: origin,
							Large: func(*http.Request) int64 { return 2 << 20 }}}
						derives(&cfg)
						c, err := New(cfg.Config)
						if err != nil {
							t.Fatal(err)
						}
						defer c.Close()
						ask := func(method string, fields ...string) *httptest.ResponseRecorder {
							r := httptest.NewRequest(method, "http://"+originHost+"/x", nil)
							for _, f := range fields {
								if name, value, ok := strings.Cut(f, ": "); ok {
									r.Header.Set(name, value)
								}
							}
							w := httptest.NewRecorder()
							c.Serve(w, r)
							synctest.Wait()
							return w
						}
						for _, f := range slices.Concat(forms, forms) {
							ask("GET", f)
						}
						version.Add(1)
						f := strings.Split(show, ", ")
						if w := ask(f[0], f[1:]...); w.Header().Get("Etag") != `"1"` {
							t.Fatalf("%s: %v", show, w.Header())
						}
						w := ask("GET", after)
						b, _ := io.ReadAll(w.Body)
						if w.Header().Get("Etag") != `"1"` || strings.ToLower(string(b[:1])) != "b" {
							t.Errorf("%d, %d bytes %.1q, %v", w.Code, len(b), b, w.Header())
						}
					})
				})
			}
		}
	}
}

// TestHeadBesideABody checks that a HEAD which shows another version than a body under way ends its storing, and that one
// which shows the same does not.
func TestHeadBesideABody(t *testing.T) {
	for _, changed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
				rw.Header().Set("Cache-Control", "max-age=600")
				rw.Header().Set("Etag", `"1"`)
				if changed && n > 0 {
					rw.Header().Set("Etag", `"2"`)
				}
				if r.Method == http.MethodHead {
					return
				}
				fmt.Fprintf(rw, "%d and", n)
				if n == 0 {
					rw.(http.Flusher).Flush()
					time.Sleep(5 * time.Second)
				}
				io.WriteString(rw, " a rest")
			}, "a")
			defer w.close()
			var slow sync.WaitGroup
			slow.Go(func() {
				if r := w.get("a", "/x"); r.body != "0 and a rest" {
					t.Errorf("the slow one got %q, %v", r.body, r.err)
				}
			})
			time.Sleep(time.Second)
			w.do("a", http.MethodHead, "/x", "", "Cache-Control: no-cache")
			slow.Wait()
			synctest.Wait()
			if r := w.get("a", "/x"); strings.HasPrefix(r.body, "0") == changed {
				t.Errorf("changed: %v: %q, %s", changed, r.body, r.status())
			}
		})
	}
}
