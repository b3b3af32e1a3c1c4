package engine

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestCollapse checks that concurrent misses for one response cause one fetch, and that all get the
// body while it arrives.
func TestCollapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			time.Sleep(time.Second)
			w.Header().Set("Cache-Control", "max-age=60")
			for range 10 {
				io.WriteString(w, strings.Repeat("x", 50_000))
				w.(http.Flusher).Flush()
				time.Sleep(900 * time.Millisecond)
			}
		}, "a")
		defer w.close()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 500 * time.Millisecond)
				if r := w.get("a", "/x"); r.err != nil || r.body != strings.Repeat("x", 500_000) {
					t.Errorf("request %d: %d bytes, %v", i, len(r.body), r.err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if a := w.peers["a"]; w.origin.count() != 1 || a.outcome(OriginFetch) != 1 || a.outcome(Collapsed)+a.outcome(LocalHit) != 19 || a.outcome(Collapsed) == 0 {
			t.Errorf("%d origin requests, %v", w.origin.count(), a.results)
		}
	})
}

// TestCollapseNotShared checks that a response that cannot be shared is fetched for each request,
// and that no request waits twice.
func TestCollapseNotShared(t *testing.T) {
	for _, fields := range []string{"Cache-Control: private", "Cache-Control: no-cache | ETag: \"a\"", "Cache-Control: max-age=0 | ETag: \"a\""} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, answers(time.Second, strings.Split(fields, " | ")...), "a")
			defer w.close()
			var wg sync.WaitGroup
			start := time.Now()
			bodies := make([]string, 10)
			for i := range bodies {
				wg.Go(func() { bodies[i] = w.get("a", "/x").body })
			}
			wg.Wait()
			if took := time.Since(start); took > 2*time.Second || w.origin.count() != 10 {
				t.Errorf("%s: %d origin requests in %v", fields, w.origin.count(), took)
			}
			seen := map[string]bool{}
			for _, b := range bodies {
				seen[b] = true
			}
			if len(seen) != 10 {
				t.Errorf("%s: answers %q", fields, bodies)
			}
		})
	}
}

// TestCollapseVariants checks that requests that wait for one fetch, and turn out to select
// different variants, continue separately, with one fetch for each variant.
func TestCollapseVariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			time.Sleep(time.Second)
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Vary", "X-V")
			io.WriteString(w, "v="+r.Header.Get("X-V"))
		}, "a")
		defer w.close()
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				v := fmt.Sprint(i % 3)
				if r := w.get("a", "/x", "X-V: "+v); r.body != "v="+v {
					t.Errorf("variant %s: %q", v, r.body)
				}
			})
		}
		wg.Wait()
		if n := w.origin.count(); n != 3 {
			t.Errorf("%d origin requests for 3 variants", n)
		}
	})
}

// TestLeaderLeaves checks that a fetch continues when the client that caused it has left.
func TestLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, strings.Repeat("x", 100_000))
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Second)
			io.WriteString(w, strings.Repeat("x", 100_000))
		}, "a")
		defer w.close()
		conn := w.dial("a")
		fmt.Fprintf(conn, "GET http://%s/x HTTP/1.1\r\nHost: x\r\n\r\n", originHost)
		io.ReadFull(conn, make([]byte, 1000))
		conn.Close()
		time.Sleep(time.Second)
		r := w.get("a", "/x")
		if len(r.body) != 200_000 || w.origin.count() > 2 { // the second was tried while the first paused
			t.Errorf("%d bytes, %d origin requests", len(r.body), w.origin.count())
		}
		time.Sleep(10 * time.Second)
		if a := w.peers["a"]; a.brokenBodies() != 1 || a.Stored.Load() != 1 {
			t.Errorf("%d answers were cut short, %d stored", a.brokenBodies(), a.Stored.Load())
		}
	})
}

// TestInvalidatedInFlight checks that a response is not stored if an unsafe method succeeded while
// it was being fetched, since it may be older: neither for a fetch that others join, nor for one that nobody can.
func TestInvalidatedInFlight(t *testing.T) {
	for _, fields := range [][]string{nil, {"Cache-Control: no-cache"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Cache-Control", "max-age=60")
				if r.Method == http.MethodGet {
					time.Sleep(10 * time.Second)
				}
				fmt.Fprint(w, "n=", n)
			}, "a")
			defer w.close()
			first := make(chan string)
			go func() { first <- w.get("a", "/x", fields...).body }()
			time.Sleep(time.Second)
			w.do("a", "PUT", "/x", "new")
			time.Sleep(5 * time.Second)
			go func() { first <- w.get("a", "/x").body }()
			if body := <-first; body != "n=0" {
				t.Errorf("%v: %q at first", fields, body)
			}
			synctest.Wait()
			if n := w.peers["a"].Stored.Load(); n != 0 {
				t.Errorf("%v: %d responses are stored that may be older than the write", fields, n)
			}
			if body := <-first; body != "n=2" {
				t.Errorf("%v: %q after the write", fields, body)
			}
			synctest.Wait()
			if r := w.get("a", "/x"); r.body != "n=2" {
				t.Errorf("%v: at last %q", fields, r.body)
			}
		})
	}
}

// TestOriginFails checks the answers to clients when the origin cannot be reached.
func TestOriginFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) { time.Sleep(time.Hour) }, "a")
		defer w.close()
		for _, tt := range []struct {
			url    string
			status int
			body   string
			detail string
		}{
			{"http://nowhere.test/x", 502, "a: the origin of nowhere.test cannot be reached.\n", "origin-unreachable"},
			{"http://" + originHost + "/x", 504, "a: the origin of origin.test did not answer in time.\n", "origin-timeout"},
		} {
			for _, method := range []string{"GET", "POST"} {
				r := w.do("a", method, tt.url, "")
				if r.StatusCode != tt.status || r.body != tt.body || !strings.HasSuffix(r.status(), "detail="+tt.detail) {
					t.Errorf("%s %s: %d %q %q", method, tt.url, r.StatusCode, r.body, r.status())
				}
			}
		}
		synctest.Wait()
		if a := w.peers["a"]; a.outcome(GatewayError) != 4 || a.OriginErrors.Load() != 4 {
			t.Errorf("%v, %d errors of origins", a.results, a.OriginErrors.Load())
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestNothingBeginsAfterClose: a request, or the rest of an answer, that comes to a fetch while the cache closes begins
// none: the store is closed. WaitGroup would panic, or let it run on.
func TestNothingBeginsAfterClose(t *testing.T) {
	w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) { w.Header().Set("Cache-Control", "max-age=60") }, "a")
	c := w.peers["a"].Cache
	w.close()
	if c.work.Go(func() { t.Error("a goroutine of a closed cache runs") }) {
		t.Error("a goroutine of a closed cache began")
	}
	rec := httptest.NewRecorder()
	if res := c.Serve(rec, httptest.NewRequest("GET", "http://origin.test/x", nil)); rec.Code != http.StatusServiceUnavailable || !errors.Is(res.Err, errStopped) {
		t.Errorf("a request to a closed cache is answered %d, %v", rec.Code, res.Err)
	}
}

// TestCloseInFlight checks that Close ends the requests under way.
func TestCloseInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Write(make([]byte, 100_000))
			w.(http.Flusher).Flush()
			time.Sleep(time.Hour)
		}, "a")
		go w.try("a", "GET", "/x", "")
		go w.try("a", "POST", "/y", "")
		time.Sleep(time.Second)
		start := time.Now()
		w.close()
		if took := time.Since(start); took > 0 {
			t.Errorf("Close took %v", took)
		}
		time.Sleep(2 * time.Hour)
	})
}
