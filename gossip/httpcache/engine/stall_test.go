package engine

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An origin stalls once: the second client has the whole body within 3 s, and by then the first has
// it too.
func TestStalledOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &faulty{body: content(1, 1000), fault: "stall", at: 100}
		w := newCluster(t, o.serve, "a")
		defer w.close()
		first := make(chan time.Duration)
		start := time.Now()
		go func() {
			if r := w.get("a", "/x"); r.body != string(o.body) {
				t.Errorf("the first: %d bytes, %v", len(r.body), r.err)
			}
			first <- time.Since(start)
		}()
		time.Sleep(42 * time.Second)
		second := time.Now()
		if r := w.get("a", "/x"); r.body != string(o.body) {
			t.Errorf("the second: %d bytes, %v", len(r.body), r.err)
		}
		if took := time.Since(second); took > 3*time.Second {
			t.Errorf("the second waited for %v", took)
		}
		if took := <-first; took > 45*time.Second {
			t.Errorf("the first waited for %v", took)
		}
		if n := w.peers["a"].BodiesTakenOver.Load(); w.origin.count() != 2 || n != 1 {
			t.Errorf("%d origin requests, %d bodies taken over", w.origin.count(), n)
		}
	})
}

// If no byte of a body arrives that must not be stored, clients get a status, as for one that is
// stored.
func TestStalledOriginNotStored(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for fault, want := range map[string]int{"stall": http.StatusGatewayTimeout, "break": http.StatusBadGateway} {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					rw.Header().Set("Cache-Control", "no-store")
					rw.Header().Set("Content-Length", "1000")
					rw.(http.Flusher).Flush()
					if fault == "stall" {
						<-r.Context().Done()
					}
					panic(http.ErrAbortHandler)
				}, "a")
				defer w.close()
				start := time.Now()
				r, err := w.try("a", method, "/x", "")
				if took := time.Since(start); err != nil || r.StatusCode != want || took > 61*time.Second {
					t.Errorf("%s, %s: %d, %v after %v, want %d", method, fault, r.StatusCode, err, took, want)
				}
			})
		}
	}
}

// TestEventsBeginAtOnce checks that the header of an event stream, whose length nobody knows, is
// sent before the first event.
func TestEventsBeginAtOnce(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
				rw.Header().Set("Content-Type", "text/event-stream")
				rw.Header().Set("Trailer", "X-End")
				rw.(http.Flusher).Flush()
				if fails {
					time.Sleep(500 * time.Millisecond)
					panic(http.ErrAbortHandler)
				}
				time.Sleep(30 * time.Second)
				fmt.Fprint(rw, "data: 1\n\n")
				rw.Header().Set("X-End", "yes")
			}, "a")
			defer w.close()
			start := time.Now()
			conn, resp, err := w.open("a", "TE: trailers")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			took := time.Since(start)
			if fails {
				if resp.StatusCode != http.StatusBadGateway {
					t.Errorf("of an origin that dies before the first event: %s", resp.Status)
				}
				return
			}
			body, err := io.ReadAll(resp.Body)
			if took > 1100*time.Millisecond || resp.StatusCode != 200 || err != nil || string(body) != "data: 1\n\n" || resp.Trailer.Get("X-End") != "yes" {
				t.Errorf("a header after %v: %s, then %q, %v, %v", took, resp.Status, body, resp.Trailer, err)
			}
		})
	}
}

// However many clients wait for an origin that stalls at the same byte, it gets one request at a
// time, and these ever less often; before the first byte it gets none.
func TestStalledOriginIsNotCrowded(t *testing.T) {
	for _, header := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := &faulty{body: content(1, 1000), fault: "stall", at: 100, times: 1000}
			var mu sync.Mutex
			now, most := 0, 0
			w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				if header {
					o.serve(rw, r, n)
				} else {
					<-r.Context().Done()
				}
				mu.Lock()
				now--
				mu.Unlock()
			}, "a")
			defer w.close()
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					time.Sleep(time.Duration(i) * 100 * time.Millisecond)
					if r, err := w.try("a", "GET", "/x", ""); err == nil && r.err == nil && r.StatusCode == 200 {
						t.Errorf("%d bytes as if they were all", len(r.body))
					}
				})
			}
			start := time.Now()
			all.Wait()
			if took := time.Since(start); took > 5*time.Minute {
				t.Errorf("header=%v: %v", header, took)
			}
			mu.Lock()
			defer mu.Unlock()
			if most > 2 || w.origin.count() > 16 {
				t.Errorf("header=%v: up to %d requests at once, %d in all", header, most, w.origin.count())
			}
		})
	}
}

// A single client's origin may pause for ten seconds before the rest is requested. Where that is
// not possible, it may pause for the timeout between bytes.
func TestBetweenBytes(t *testing.T) {
	for _, test := range []struct {
		method, tag, fields string
		pause               time.Duration
		whole               bool
	}{
		{"GET", `"a"`, "", 10 * time.Second, true},
		{"GET", `"a"`, "Cache-Control: no-store", 60 * time.Second, false},
		{"GET", `"a"`, "Cache-Control: private", 60 * time.Second, false},
		{"GET", `W/"a"`, "", 60 * time.Second, true},
		{"GET", "", "Cache-Control: private", 60 * time.Second, false},
		{"POST", `"a"`, "", 60 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &faulty{body: content(1, 1000), fault: "stall", at: 100, tag: test.tag, ranges: true, fields: test.fields}
			w := newCluster(t, o.serve, "a")
			defer w.close()
			start := time.Now()
			r, err := w.try("a", test.method, "/x", "")
			whole := err == nil && r.err == nil && r.body == string(o.body)
			if took := time.Since(start); took < test.pause || took > test.pause+time.Second || whole != test.whole || w.origin.count() > 2 {
				t.Errorf("%+v: %d bytes after %v and %d requests, %v", test, len(r.body), took, w.origin.count(), r.err)
			}
		})
	}
}

// The rest of a body that the origin has replaced can come only from the source that has it. That
// source may pause, but once it stalls, clients with a part of the body are soon disconnected.
func TestStallOfReplaced(t *testing.T) {
	const size = 200_000
	body, other := content(1, size), content(2, size)
	for _, stalls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Cache-Control", "max-age=600")
				w.Header().Set("Content-Length", fmt.Sprint(size))
				w.Header().Set("ETag", fmt.Sprintf(`"%d"`, min(n, 1)))
				if n > 0 {
					w.Write(other)
					return
				}
				for at := 0; at < size; at += size / 4 {
					w.Write(body[at:][:size/4])
					w.(http.Flusher).Flush()
					if stalls && at > 0 {
						<-r.Context().Done()
						return
					}
					if at+size/4 < size {
						time.Sleep(1500 * time.Millisecond)
					}
				}
			}, "a")
			defer w.close()
			var all sync.WaitGroup
			start := time.Now()
			for i := range 2 {
				all.Go(func() {
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
					r := w.get("a", "/x")
					switch took := time.Since(start); {
					case !stalls && (r.err != nil || !bytes.Equal([]byte(r.body), body)):
						t.Errorf("client %d: %d bytes, %v after %v from a source that only pauses", i, len(r.body), r.err, took)
					case stalls && (r.err == nil || !bytes.HasPrefix(body, []byte(r.body))):
						t.Errorf("client %d: %d bytes, %v", i, len(r.body), r.err)
					case stalls && took > 6*time.Second:
						t.Errorf("client %d was let go after %v", i, took)
					}
				})
			}
			all.Wait()
		})
	}
}

// What an origin has sent before it pauses reaches the client at once, also if the pieces are as long as a
// ResponseWriter's buffer.
func TestNothingIsHeldBack(t *testing.T) {
	for _, n := range []int{1, heldBack - 1, heldBack} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				w.Header().Set("Cache-Control", "private")
				w.Header().Set("Content-Length", "10000")
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond) // so that the peer reads these bytes in one piece
				w.Write(make([]byte, n))
				w.(http.Flusher).Flush()
				time.Sleep(30 * time.Second)
				w.Write(make([]byte, 10_000-n))
			}, "a")
			defer w.close()
			start := time.Now()
			conn, resp, err := w.open("a")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, n)); err != nil || time.Since(start) > time.Second {
				t.Errorf("the first %d bytes after %v, %v", n, time.Since(start), err)
			}
			if rest, err := io.ReadAll(resp.Body); len(rest) != 10_000-n || err != nil {
				t.Errorf("%d bytes more, %v", len(rest), err)
			}
		})
	}
}
