package engine

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// A client that asks again as soon as it has the last byte of an answer.
type insistent struct {
	*httptest.ResponseRecorder
	size  int
	again func()
}

func (w *insistent) Write(p []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(p)
	if w.Body.Len() == w.size {
		w.again()
	}
	return n, err
}

type originFunc func(*http.Request) (*http.Response, error)

func (f originFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestReloadIsNotUndone checks that whoever asks after a client has got a new version by a reload gets no older one, though
// the new one is not stored yet, or can't be.
func TestReloadIsNotUndone(t *testing.T) {
	for _, size := range []int{1000, 100_000, 3 << 20} {
		var version atomic.Int32
		origin := originFunc(func(r *http.Request) (*http.Response, error) {
			body := strings.Repeat(string('a'+version.Load()), size)
			return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(size),
				Header: http.Header{"Cache-Control": {"max-age=600"}}, Body: &withEOF{[]byte(body)}}, nil
		})
		c, err := New(Config{Name: "a", Open: memstore.Open(64 << 20), Transport: origin})
		if err != nil {
			t.Fatal(err)
		}
		get := func(w http.ResponseWriter, fields ...string) {
			r := httptest.NewRequest(http.MethodGet, "http://"+originHost+"/x", nil)
			for _, f := range fields {
				r.Header.Set("Cache-Control", f)
			}
			c.Serve(w, r)
		}
		for i := range 30 {
			for stored := false; !stored; _, stored = c.store.Peek("GET http://" + originHost + "/x") {
				get(httptest.NewRecorder())
			}
			version.Add(1)
			asked := false
			again := func() {
				asked = true
				got := httptest.NewRecorder()
				if get(got); got.Body.Len() != size || got.Body.String()[0] != 'a'+byte(version.Load()) {
					t.Errorf("%d bytes: %d bytes %.1q, %v", size, got.Body.Len(), got.Body.String(), got.Header())
				}
			}
			if get(&insistent{httptest.NewRecorder(), size, again}, []string{"no-cache", "max-age=0", "min-fresh=700"}[i%3]); !asked {
				t.Errorf("%d bytes: the reload got none", size)
			}
		}
		c.Close()
	}
}

// TestSlowReload checks that an answer whose body came slowly does not take the place of a later one, even if that broke off
// and another fetch has brought the rest.
func TestSlowReload(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
				version := min(n, 2)
				rw.Header().Set("Cache-Control", "max-age=600")
				rw.Header().Set("Etag", fmt.Sprintf("%q", fmt.Sprint(version)))
				rw.Header().Set("Content-Length", "12")
				fmt.Fprintf(rw, "%d and", version)
				rw.(http.Flusher).Flush()
				switch {
				case n == 1:
					time.Sleep(5 * time.Second)
				case n == 2 && breaks:
					panic(http.ErrAbortHandler)
				}
				io.WriteString(rw, " a rest")
			}, "a")
			defer w.close()
			w.get("a", "/x")
			var slow sync.WaitGroup
			slow.Go(func() {
				if r := w.get("a", "/x", "Cache-Control: max-age=0"); r.body != "1 and a rest" {
					t.Errorf("the slow one got %q, %v", r.body, r.err)
				}
			})
			time.Sleep(time.Second)
			if r := w.get("a", "/x", "Cache-Control: no-cache"); r.body != "2 and a rest" {
				t.Errorf("the second got %q, %v", r.body, r.err)
			}
			slow.Wait()
			synctest.Wait()
			if r := w.get("a", "/x"); r.body != "2 and a rest" {
				t.Errorf("after both: %q, %s", r.body, r.status())
			}
		})
	}
}
