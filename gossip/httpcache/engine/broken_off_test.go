package engine

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A body breaks off, and the origin has another representation by now. Clients that have a part are cut at once, and
// those that have nothing get what the origin has. A body that a sibling began and the origin refutes is not finished.
func TestBrokenOffAndReplaced(t *testing.T) {
	const size = 300_000
	for _, tt := range []struct {
		name   string
		begins string // the body: the origin or the sibling
		tag    string // of what the origin has then; that of the body is "a"
		part   int    // of the body has come
	}{
		{"a lie", "sibling", `"a"`, 100_000},
		{"a former version", "sibling", `"b"`, 100_000},
		{"the origin's", "origin", `"b"`, 100_000},
		{"the origin's, contradictory", "origin", `"a"`, 100_000},
		{"nothing was sent", "origin", `"b"`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, now := content(1, size), content(2, size)
				w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
					if n == 0 && tt.begins == "origin" {
						breakOff(rw, before[:tt.part], size)
					}
					rw.Header().Set("Cache-Control", "max-age=600")
					rw.Header().Set("Etag", tt.tag)
					time.Sleep(100 * time.Millisecond)
					rw.Write(now)
				})
				defer w.close()
				w.start("a", t.TempDir())
				if tt.begins == "sibling" {
					w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
						rw.Header().Set("Cache-Status", "c; hit; ttl=3600")
						rw.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
						breakOff(rw, before[:tt.part], size)
					})
					w.claim("c", "/x")
				}
				var all sync.WaitGroup
				for _, start := range []time.Duration{0, 50 * time.Millisecond, 3 * time.Second} {
					all.Go(func() {
						time.Sleep(start)
						got, took, err := w.within("a", time.Minute)
						whole := err == nil && bytes.Equal(got, now)
						cut := start < time.Second && err != nil && bytes.HasPrefix(before, got)
						if !whole && !cut || took > 200*time.Millisecond {
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
