package engine

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// derives has responses derived for clients that accept "up": upper-case ones of those that are worth it.
func derives(c *peerConfig) {
	c.Recode = func(r *http.Request, _ http.Header) func(*http.Response) bool {
		if r.Header.Get("Accept-Encoding") != "up" {
			return nil
		}
		return func(resp *http.Response) bool {
			if resp.Header.Get("Content-Type") != "text/plain" {
				return false
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body = io.NopCloser(strings.NewReader(strings.ToUpper(string(b))))
			resp.Header.Set("Content-Encoding", "up")
			return true
		}
	}
}

// A response that is not worth recoding, or is, is validated in each way in which one is: within a second, and by one
// request to the origin.
func TestDerivedIsValidated(t *testing.T) {
	for _, kind := range []string{"image/png", "text/plain"} {
		for _, first := range []string{"identity", "up"} {
			for name, again := range map[string][]string{"stale": nil, "max-age": {"Cache-Control: max-age=0"}, "reload": {"Cache-Control: no-cache"},
				"in the background": nil, "conditional": {`If-None-Match: "1"`, "Cache-Control: max-age=0"}} {
				for _, then := range []string{"304", "another version", "another type"} {
					t.Run(kind+", first for "+first+", "+name+", "+then, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							body, tag, is := "one", `"1"`, kind
							w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
								h := w.Header()
								h.Set("Cache-Control", "max-age=60, stale-while-revalidate=60")
								h.Set("Etag", tag)
								h.Set("Content-Type", is)
								if is == "text/plain" { // what a transport does whose responses are recoded
									h.Set("Vary", "Accept-Encoding")
								}
								if r.Header.Get("If-None-Match") == tag {
									w.WriteHeader(http.StatusNotModified)
									return
								}
								io.WriteString(w, body)
							})
							defer w.close()
							w.tune = derives
							w.start("a", t.TempDir())
							get := func(fields ...string) reply {
								t.Helper()
								got := make(chan reply, 1)
								go func() {
									r, err := w.try("a", http.MethodGet, "/x", "", fields...)
									if err == nil {
										got <- r
									}
								}()
								select {
								case r := <-got:
									return r
								case <-time.After(time.Minute):
									t.Fatal("no answer within a minute")
									return reply{}
								}
							}
							get("Accept-Encoding: " + first)
							get("Accept-Encoding: up")
							switch then {
							case "another version":
								body, tag = "two", `"2"`
							case "another type":
								body, tag, is = "two", `"2"`, map[string]string{"image/png": "text/plain", "text/plain": "image/png"}[kind]
							}
							switch name {
							case "stale":
								time.Sleep(3 * time.Minute)
							case "in the background":
								time.Sleep(90 * time.Second)
							default:
								time.Sleep(2 * time.Second) // Date has whole seconds
							}
							before, began := w.origin.count(), time.Now()
							r := get(append([]string{"Accept-Encoding: up"}, again...)...)
							took := time.Since(began)
							if name == "in the background" { // the plain response is renewed first, then the one that is derived from it
								for range 2 {
									synctest.Wait()
									r = get("Accept-Encoding: up")
								}
							}
							if n := w.origin.count() - before; n != 1 || took > time.Second {
								t.Errorf("%d requests to the origin, %v", n, took)
							}
							synctest.Wait() // it is stored
							if r.StatusCode == http.StatusNotModified && name == "conditional" && then == "304" {
								return
							}
							if got := strings.ToLower(r.body); got != body || r.err != nil || (r.Header.Get("Content-Encoding") == "up") != (r.body == strings.ToUpper(body)) {
								t.Errorf("%d %q %v: %s, %v", r.StatusCode, r.body, r.Header, r.status(), r.err)
							}
							if r = get("Accept-Encoding: identity"); r.body != body {
								t.Errorf("for another client %d %q: %s", r.StatusCode, r.body, r.status())
							}
						})
					})
				}
			}
		}
	}
}

// That an answer is stale, since its origin is down, is said also of what a sibling gave to derive from.
func TestDerivedFromStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			if down {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Content-Type", "image/png")
			io.WriteString(w, "one")
		})
		defer w.close()
		w.tune = func(c *peerConfig) { derives(c); c.Others = w.others("a") }
		w.start("a", t.TempDir())
		w.start("b", t.TempDir())
		w.get("a", "/x")
		time.Sleep(2 * time.Minute)
		down = true
		if r := w.get("b", "/x", "Accept-Encoding: up"); r.body != "one" || !strings.HasSuffix(r.status(), "detail=stale-if-error") {
			t.Errorf("%d %q: %s", r.StatusCode, r.body, r.status())
		}
	})
}
