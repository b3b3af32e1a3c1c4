package engine

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A body that turns out to be too long for the store is passed through. A client that stops
// reading, or reads slowly, delays the others by a second and then gets the rest by its own fetch:
// all get the whole body, each at its own pace.
func TestSlowClientAmongOthers(t *testing.T) {
	const size = 3_000_000
	body := content(1, size)
	for _, tag := range []string{"", `"a"`} {
		for _, pause := range []time.Duration{400 * time.Millisecond, 20 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
					w.Header().Set("Cache-Control", "max-age=600")
					if tag != "" {
						w.Header().Set("ETag", tag)
					}
					time.Sleep(10 * time.Millisecond) // until all have joined
					w.Write(body[:1000])
					w.(http.Flusher).Flush()
					time.Sleep(10 * time.Millisecond) // until all follow: one that comes when the beginning is gone has a fetch of its own
					w.Write(body[1000:])
				})
				defer w.close()
				w.tune = func(c *peerConfig) { c.Store.MaxBytes = 4 << 20 }
				w.start("a", t.TempDir())
				var clients sync.WaitGroup
				clients.Go(func() {
					conn, resp, err := w.open("a")
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					var got []byte
					for err == nil {
						var n int
						buf := make([]byte, 20_000)
						n, err = io.ReadFull(resp.Body, buf)
						got = append(got, buf[:n]...)
						if len(got) < 10*len(buf) || pause < time.Second { // it stops for long only at first
							time.Sleep(pause)
						}
					}
					if !bytes.Equal(got, body) {
						t.Errorf("tag %q, pauses of %v: the slow client got %d bytes, %v", tag, pause, len(got), err)
					}
				})
				start := time.Now()
				for range 2 {
					clients.Go(func() {
						time.Sleep(time.Millisecond)
						r, err := w.try("a", "GET", "/x", "")
						if took := time.Since(start); err != nil || r.err != nil || r.body != string(body) || took > 2*time.Second {
							t.Errorf("tag %q, pauses of %v: %d bytes, %v, %v after %v", tag, pause, len(r.body), err, r.err, took)
						}
					})
				}
				clients.Wait()
				if n := w.origin.count(); n != 2 {
					t.Errorf("tag %q, pauses of %v: %d origin requests", tag, pause, n)
				}
			})
		}
	}
}
