package httpcache

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A body breaks off, and the origin has another representation by now, or is down. Then only a stale copy may
// have the rest, and the sibling with one is slow. Clients that have a part are cut within seconds, and those
// that have nothing get what the origin has, at once. A body that a sibling began and the origin refutes is
// not finished.
func TestStaleCopyCrawls(t *testing.T) {
	const size = 300_000
	for _, tt := range []struct {
		name   string
		begins string // the body: the origin or the sibling
		tag    string // of what the origin has then, "" = it is down; that of the body is "a"
		part   int    // of the body has come
		stale  string // what the sibling does when it is asked for a stale copy
	}{
		{"a lie", "sibling", `"a"`, 100_000, "crawls"},
		{"a lie would be finished", "sibling", `"a"`, 100_000, "answers"},
		{"a lie, then nothing", "sibling", `"a"`, 100_000, "waits"},
		{"a former version", "sibling", `"b"`, 100_000, "crawls"},
		{"down", "sibling", "", 100_000, "crawls"},
		{"the origin's", "origin", `"b"`, 100_000, "crawls"},
		{"the origin's, no header", "origin", `"b"`, 100_000, "waits"},
		{"the origin's, contradictory", "origin", `"a"`, 100_000, "waits"},
		{"nothing was sent", "origin", `"b"`, 0, "waits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, now := content(1, size), content(2, size)
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					switch {
					case n == 0 && tt.begins == "origin":
						breakOff(rw, before[:tt.part], size)
					case tt.tag == "":
						rw.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					rw.Header().Set("Cache-Control", "max-age=600")
					rw.Header().Set("Etag", tt.tag)
					time.Sleep(100 * time.Millisecond)
					rw.Write(now)
				})
				defer w.close()
				w.tune = func(c *peerConfig) { c.Others = w.others("c") }
				w.start("a", t.TempDir())
				var asked atomic.Int64
				w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Cache-Status", "c; hit; ttl=3600")
					rw.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
					if asked.Add(1) == 1 && tt.begins == "sibling" {
						breakOff(rw, before[:tt.part], size)
					}
					fast := 0
					switch tt.stale {
					case "answers":
						fast = size
					case "waits":
						<-r.Context().Done()
					}
					forms[0].give(rw, r, before, fast, true)
				})
				if tt.begins == "sibling" {
					w.claim("c", "/x")
				}
				var all sync.WaitGroup
				for _, start := range []time.Duration{0, 50 * time.Millisecond, 3 * time.Second} {
					if tt.tag == "" && start > time.Second {
						break // without the origin, the slow copy is the best
					}
					all.Go(func() {
						time.Sleep(start)
						got, took, err := w.within("a", time.Minute)
						whole := err == nil && bytes.Equal(got, now)
						cut := start < time.Second && err != nil && bytes.HasPrefix(before, got)
						refused := err == nil && len(got) < 1000 && tt.tag == ""
						limit := 200 * time.Millisecond
						if cut && tt.begins == "origin" {
							limit = time.Second // in which siblings are asked
						} else if tt.tag == "" {
							limit = 20 * time.Second
						}
						if !whole && !cut && !refused || took > limit {
							t.Errorf("from %v on: %d bytes in %v, right %v, %v", start, len(got), took, bytes.HasPrefix(now, got), err)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// breakOff answers with a body of the tag "a" that ends before its length.
func breakOff(w http.ResponseWriter, part []byte, length int) {
	w.Header().Set("Cache-Control", "max-age=600")
	w.Header().Set("Etag", `"a"`)
	w.Header().Set("Content-Length", fmt.Sprint(length))
	w.Write(part)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
