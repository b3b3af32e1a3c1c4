package engine

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

// A disk that returns some blocks, and then errors or flipped bits, breaks no answer: neither one
// from the store, however much of it was sent, nor one that is read from its file while it arrives.
func TestDiskFailsWithinAnswer(t *testing.T) {
	const size = 1_000_000
	body, cases := content(1, size), 0
	for _, flip := range []bool{false, true} {
		for _, tag := range []string{"", `"a"`} {
			for _, good := range []int64{0, 1, 2, 5, 12} {
				for _, fields := range [][]string{nil, {"Range: bytes=100000-"}, {"Connection: close"}} {
					if !inShort(&cases, 7) {
						continue
					}
					name := fmt.Sprintf("flip=%v, tag %q, %d good reads, %v", flip, tag, good, fields)
					synctest.Test(t, func(t *testing.T) {
						w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
							w.Header().Set("Cache-Control", "max-age=600")
							w.Header().Set("Content-Length", strconv.Itoa(size))
							if tag != "" {
								w.Header().Set("ETag", tag)
							}
							w.Write(body)
						})
						defer w.close()
						var left atomic.Int64
						left.Store(1000)
						disk := disktest.New()
						disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
							switch {
							case op != disktest.Read || len(b) < 10_000 || left.Add(-1) >= 0: // what describes a body is shorter
							case flip:
								b[0] ^= 1
							default:
								return 0, syscall.EIO
							}
							return 0, nil
						})
						w.tune = func(c *peerConfig) { c.Store.FS = disk }
						h := w.start("a", "/store")
						w.get("a", "/x")
						synctest.Wait()
						left.Store(good)
						r, err := w.try("a", "GET", "/x", "", fields...)
						if err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						want := body
						if r.StatusCode == http.StatusPartialContent {
							want = body[100_000:]
						}
						if r.err != nil || !bytes.Equal([]byte(r.body), want) {
							t.Errorf("%s: %d, %d bytes, %v, %s", name, r.StatusCode, len(r.body), r.err, r.status())
						}
						if r := w.get("a", "/y"); r.err != nil || !bytes.Equal([]byte(r.body), body) {
							t.Errorf("%s: a body that arrives: %d bytes, %v", name, len(r.body), r.err)
						}
						synctest.Wait()
						if n := h.store.Stats(); n.WritingBytes != 0 {
							t.Errorf("%s: %d bytes are still being written", name, n.WritingBytes)
						}
						if n := w.origin.count(); n > 7 {
							t.Errorf("%s: %d origin requests", name, n)
						}
					})
				}
			}
		}
	}
}

// The disk fails for a body that arrives, or has just arrived, while the version before it is still in the store, and neither
// has a validator: the rest does not come from that one.
func TestDiskFailsWhileAnOlderVersionIsStored(t *testing.T) {
	for i := range 8 {
		length, sized, arrives := []int{700_000, 699_999}[i%2], i/2%2 == 1, i/4 == 1
		for _, good := range []int64{0, 1, 4} {
			synctest.Test(t, func(t *testing.T) {
				older, body := content(0, 700_000), content(1, length)
				more := make(chan struct{})
				w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
					body := body
					if n == 0 {
						body = older
					}
					w.Header().Set("Cache-Control", "max-age=1")
					if sized {
						w.Header().Set("Content-Length", strconv.Itoa(len(body)))
					}
					if n == 1 && arrives {
						w.Write(body[:600_000])
						w.(http.Flusher).Flush()
						<-more
						body = body[600_000:]
					}
					w.Write(body)
				})
				defer w.close()
				defer close(more)
				var left atomic.Int64
				left.Store(1000)
				disk := disktest.New()
				disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
					if op == disktest.Read && len(b) >= 10_000 && left.Add(-1) == -1 { // once
						return 0, syscall.EIO
					}
					return 0, nil
				})
				w.tune = func(c *peerConfig) { c.Store.FS = disk }
				w.start("a", "/store")
				w.get("a", "/x")
				time.Sleep(2 * time.Second)
				conn, resp, err := w.open("a")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				synctest.Wait() // what was sent has arrived, and its client has not read it
				left.Store(good)
				if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes, sized %v, arriving %v, %d good reads: %d bytes, %v", length, sized, arrives, good, len(got), err)
				}
			})
		}
	}
}

// The disk fails for a body that is arriving from a sibling. If part of it was sent, the sibling
// supplies the rest, although the origin has another version by now. Otherwise either version will
// do.
func TestDiskGivesNothingOfAnOlderBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 700_000
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=600")
			w.Header().Set("Content-Length", strconv.Itoa(size))
			w.Write(content(uint64(n), size))
		})
		defer w.close()
		w.start("b", t.TempDir())
		w.tune = func(c *peerConfig) {
			disk := disktest.New()
			disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
				if op == disktest.Read && len(b) >= 10_000 {
					return 0, syscall.EIO
				}
				return 0, nil
			})
			c.Store.FS = disk
		}
		w.start("a", "/store")
		older := w.get("b", "/x")
		synctest.Wait()
		w.claim("b", "/x")
		r, err := w.try("a", "GET", "/x", "")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%v, %+v", err, r.status())
		}
		if r.err != nil || r.body != older.body && r.body != string(content(1, size)) {
			t.Errorf("%v, %d bytes, %+v", r.err, len(r.body), r.status())
		}
	})
}

// The disk fails within an answer, then the sibling that sends the rest fails, and the origin
// finishes the answer.
func TestDiskAndSiblingFailWithinAnswer(t *testing.T) {
	const size = 1_000_000
	body := content(1, size)
	for _, at := range []int{0, 1, 100_000, 400_000, 999_999} {
		for _, fault := range []string{"cut", "stall"} {
			for _, tag := range []string{"", `"a"`} {
				t.Run(fmt.Sprintf("%s at %d, tag %q", fault, at, tag), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						good := &faulty{body: body, tag: tag, ranges: true}
						w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) { good.serve(w, r, 1) })
						defer w.close()
						var fails atomic.Bool
						disk := disktest.New()
						var reads atomic.Int64
						disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
							if op == disktest.Read && len(b) >= 10_000 && fails.Load() && reads.Add(1) > 3 {
								return 0, syscall.EIO
							}
							return 0, nil
						})
						w.tune = func(c *peerConfig) { c.Store.FS = disk }
						w.start("a", "/store")
						w.get("a", "/x")
						synctest.Wait()
						w.rogue("c", &faulty{body: body, tag: tag, ranges: true, fault: fault, at: at})
						fails.Store(true)
						r, err := w.try("a", "GET", "/x", "")
						if err != nil || r.err != nil || r.body != string(body) {
							t.Errorf("%v, %d bytes, %v; %s", err, len(r.body), r.err, r.status())
						}
						time.Sleep(2 * time.Minute)
					})
				})
			}
		}
	}
}

// The disk fails within an answer that is kept in slices, and the store takes no new one: the client that has a part
// gets the rest past the store, also from an origin that no longer knows ranges.
func TestDiskFailsWithinSlice(t *testing.T) {
	const size = 1_700_000
	for n := range int64(16) {
		good, ignores := n/2, n%2 == 1
		synctest.Test(t, func(t *testing.T) {
			body := string(content(1, size))
			filled := false
			w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
				if ignores && filled {
					r.Header.Del("Range")
				}
				validated(body)(rw, r, n)
			})
			defer w.close()
			var left atomic.Int64
			left.Store(1000)
			disk := disktest.New()
			disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
				if op == disktest.Read && len(b) >= 10_000 && left.Add(-1) < 0 {
					return 0, syscall.EIO
				}
				return 0, nil
			})
			taking := &sliceWorld{}
			taking.room.Store(1000)
			w.tune = func(c *peerConfig) {
				c.Store.FS = disk
				c.Large = func(*http.Request) int64 { return SliceSize + 1 }
				c.Open = func(h bodies.Hooks) (bodies.Store, error) {
					s, err := c.Store.Open(h)
					return fillable{s, taking}, err
				}
			}
			w.start("a", "/store")
			w.get("a", "/x")
			synctest.Wait()
			left.Store(good)
			filled = true
			taking.room.Store(n % 3)
			r, err := w.try("a", "GET", "/x", "")
			if err != nil || r.err != nil || r.body != body {
				t.Errorf("%d good reads, ranges are ignored %v: %v, %d bytes, %v; %s", good, ignores, err, len(r.body), r.err, r.status())
			}
		})
	}
}
