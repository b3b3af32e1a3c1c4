package engine

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
)

// The servers of a large object do not agree in its version, or not always in how they answer a range: every download is
// whole and of one version, at the first try, at both peers.
func TestServersDisagree(t *testing.T) {
	const size = 9*sliceLength + 100
	rounds := 6
	if testing.Short() { // with the race detector
		rounds = 3
	}
	alternate := func(w *sliceWorld) {
		n := 0
		w.rewrite = func(h http.Header) { n++; h.Set("Etag", fmt.Sprintf(`"%d"`, n%2)) }
	}
	now := func(w *sliceWorld, answer func(r *http.Request, resp *http.Response)) {
		n := 0
		w.answered = func(r *http.Request, resp *http.Response) {
			if n++; resp.StatusCode == 206 && n%3 == 0 {
				answer(r, resp)
			}
		}
	}
	for name, tune := range map[string]func(w *sliceWorld){
		"tags": alternate,
		"tags, and other bytes": func(w *sliceWorld) {
			alternate(w)
			w.bodies = map[string][]byte{`"0"`: w.body, `"1"`: content(9, size)}
		},
		"tags, and other lengths": func(w *sliceWorld) {
			alternate(w)
			w.bodies = map[string][]byte{`"0"`: w.body, `"1"`: content(9, size+5)}
		},
		"tags at random": func(w *sliceWorld) {
			rng := rand.New(rand.NewPCG(1, 2))
			w.rewrite = func(h http.Header) { h.Set("Etag", fmt.Sprintf(`"%d"`, rng.IntN(2))) }
			w.bodies = map[string][]byte{`"0"`: w.body, `"1"`: content(9, size)}
		},
		"dates": func(w *sliceWorld) {
			n := 0
			w.tag = ""
			w.rewrite = func(h http.Header) { n++; h.Set("Last-Modified", fmt.Sprintf("Mon, 0%d Jan 1999 00:00:00 GMT", 1+n%2)) }
		},
		"an unknown length": func(w *sliceWorld) {
			now(w, func(r *http.Request, resp *http.Response) {
				span, _, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
				resp.Header.Set("Content-Range", span+"/*")
			})
		},
		"416": func(w *sliceWorld) {
			now(w, func(r *http.Request, resp *http.Response) {
				resp.StatusCode, resp.Body, resp.ContentLength = 416, io.NopCloser(strings.NewReader("")), 0
				resp.Header = http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", size)}, "Date": resp.Header["Date"]}
			})
		},
		"a range is ignored": func(w *sliceWorld) {
			now(w, func(r *http.Request, resp *http.Response) {
				resp.StatusCode, resp.Body, resp.ContentLength = 200, io.NopCloser(bytes.NewReader(w.body)), size
				resp.Header.Del("Content-Range")
				resp.Header.Set("Content-Length", fmt.Sprint(size))
			})
		},
		"it grows": func(w *sliceWorld) {
			w.bodies = map[string][]byte{}
			grown := w.body
			w.rewrite = func(h http.Header) {
				grown = append(grown[:len(grown):len(grown)], 'x')
				tag := fmt.Sprintf(`"%d"`, len(grown))
				h.Set("Etag", tag)
				w.bodies[tag] = grown
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSliceWorld(t, size, "a", "b")
				defer w.close()
				tune(w)
				for i := range rounds {
					peer := []string{"a", "b"}[i/2%2]
					rec, res := w.get(peer)
					want := w.body
					if w.mu.Lock(); w.bodies != nil {
						want = w.bodies[rec.Header().Get("Etag")]
					}
					w.mu.Unlock()
					if rec.Code != 200 || res.Err != nil || !bytes.Equal(rec.Body.Bytes(), want) {
						t.Errorf("%d, at %s: %d, %d bytes of %d, right so far %v, %v", i, peer, rec.Code, rec.Body.Len(), len(want), bytes.HasPrefix(want, rec.Body.Bytes()), res.Err)
					}
					synctest.Wait()
				}
				for i := range rounds { // a cold range of two slices
					for _, c := range w.caches {
						c.Purge(TargetOf("http://origin.test/x"))
						c.unsliced.set("http://origin.test/x", 0)
					}
					rec, res := w.get("a", "Range: bytes=1000-1999999")
					want := w.body
					if w.mu.Lock(); w.bodies != nil {
						want = w.bodies[rec.Header().Get("Etag")]
					}
					w.mu.Unlock()
					// A range ends where the origin has no other server, and none has the version any more.
					if grows := name == "it grows"; rec.Code == 206 && !grows && (res.Err != nil || !bytes.Equal(rec.Body.Bytes(), want[1000:2000000])) {
						t.Errorf("range %d: %d bytes, right so far %v, %v", i, rec.Body.Len(), bytes.HasPrefix(want[1000:], rec.Body.Bytes()), res.Err)
					}
				}
			})
		})
	}
}

// An origin that answers no range of a slice as it should, once its first answer has ended, is asked for all that is left
// at once.
func TestLateSlicesDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 9*sliceLength + 100
		w := newSliceWorld(t, size, "a")
		defer w.close()
		w.answered = func(r *http.Request, resp *http.Response) {
			span, _, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
			var first, last int64
			if fmt.Sscanf(span, "bytes %d-%d", &first, &last); first >= 4*sliceLength {
				resp.Header.Set("Content-Range", span+"/*")
			}
		}
		for range 3 {
			if rec, res := w.get("a"); res.Err != nil || !bytes.Equal(rec.Body.Bytes(), w.body) {
				t.Errorf("%d, %d bytes of %d, %v", rec.Code, rec.Body.Len(), size, res.Err)
			}
		}
	})
}

// The origin's first answer with the whole is closed when the second slice is found to fit, not when its client has the last
// one; and that slice is requested while the client gets the first one.
func TestFirstAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 20*sliceLength + 5
		w := newSliceWorld(t, size, "a")
		defer w.close()
		state := func(after int, want string) *purgingClient {
			return &purgingClient{ResponseRecorder: httptest.NewRecorder(), after: after, purge: func() {
				synctest.Wait()
				w.mu.Lock()
				defer w.mu.Unlock()
				if got := fmt.Sprint(len(w.ranges), " requests, ", w.open, " open"); got != want {
					t.Errorf("after %d bytes: %s, want %s", after, got, want)
				}
			}}
		}
		for _, rec := range []*purgingClient{state(1000, "2 requests, 1 open"), state(sliceLength+1000, "4 requests, 0 open")} {
			w.caches["a"].Purge(TargetOf("http://origin.test/x"))
			w.caches["a"].large.set("http://origin.test/x", 0)
			w.asked()
			res := w.caches["a"].Serve(rec, httptest.NewRequest("GET", "http://origin.test/x", nil))
			if res.Err != nil || !bytes.Equal(rec.Body.Bytes(), w.body) {
				t.Errorf("%d bytes of %d, %v", rec.Body.Len(), size, res.Err)
			}
			synctest.Wait()
		}
		if w.open > 0 {
			t.Errorf("%d answers of the origin are still open", w.open)
		}
	})
}
