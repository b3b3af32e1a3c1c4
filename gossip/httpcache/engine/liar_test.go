package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// sumsOf returns the field with the checksums of a body, by PROTOCOL.md section 13.
func sumsOf(body string) string {
	var b []byte
	for block := range slices.Chunk([]byte(body), 65536) {
		b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(block))
	}
	return ":" + base64.StdEncoding.EncodeToString(b) + ":"
}

func (w *cluster) asked(peer string) uint64 { return w.peers[peer].siblings.Stats().Asked }

// validated is an origin whose body has an entity tag and supports ranges.
func validated(body string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Cache-Control", "max-age=31536000")
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
	}
}

// forged is a sibling's answer of any age with the origin's validator.
func forged(body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` {
			holds("", append(fields, `Etag: "v1"`, "Cache-Control: max-age=2147483647", "Age: 0", "Date: Fri, 31 Dec 2100 23:59:59 GMT")...)(notModified{w}, r)
			return
		}
		fields := append(fields, `Etag: "v1"`, "Cache-Control: max-age=2147483647, stale-while-revalidate=2147483647, stale-if-error=2147483647",
			"Age: 0", "Date: Fri, 31 Dec 2100 23:59:59 GMT", "Expires: Fri, 31 Dec 2199 23:59:59 GMT", "Content-Length: "+strconv.Itoa(len(body)))
		holds(body, fields...)(w, r)
	}
}

// notModified makes an answer a 304.
type notModified struct{ http.ResponseWriter }

func (w notModified) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusNotModified)
	return 0, nil
}

// While the origin is down, a copy beyond that limit is served rather than an error.
func TestOverdueWhileTheOriginIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			if down {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			validated("true")(w, r, n)
		})
		w.tune = func(c *peerConfig) { c.SiblingMaxAge = time.Hour }
		w.start("a", t.TempDir())
		w.start("b", t.TempDir())
		defer w.close()
		w.get("a", "/x")
		synctest.Wait()
		if got := w.get("b", "/x"); !strings.Contains(got.status(), "detail=sibling") {
			t.Fatalf("not from a: %s", got.status())
		}
		time.Sleep(2 * time.Hour)
		down = true
		if got := w.get("b", "/x"); got.StatusCode != 200 || got.body != "true" {
			t.Errorf("with the origin down: %d %q", got.StatusCode, got.body)
		}
	})
}

// Blocks that do not match the checksums of their body reach no client and no store: the rest comes
// from another source, and the sibling is quarantined.
func TestSpoiltBlocks(t *testing.T) {
	truth := strings.Repeat("0123456789abcdef", 16<<10) // 256 KiB
	for _, at := range []int{0, 1, 65535, 65536, 150_000, len(truth) - 1} {
		for _, tagged := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
					if tagged {
						validated(truth)(w, r, n)
						return
					}
					w.Header().Set("Cache-Control", "max-age=600")
					io.WriteString(w, truth)
				}, "a")
				defer w.close()
				spoilt := []byte(truth)
				spoilt[at] ^= 0x10
				w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
					fields := []string{"Summarycache-Body: " + sumsOf(truth), "Content-Length: " + strconv.Itoa(len(truth))}
					if tagged {
						fields = append(fields, `Etag: "v1"`)
					}
					holds(string(spoilt), fields...)(rw, r)
				})
				w.claim("c", "/x")
				w.claim("c", "/y")
				if got := w.get("a", "/x"); got.body != truth || got.err != nil {
					i := 0
					for i < min(len(truth), len(got.body)) && truth[i] == got.body[i] {
						i++
					}
					t.Errorf("byte %d, tagged %v: %d bytes, right up to %d, %v", at, tagged, len(got.body), i, got.err)
				}
				synctest.Wait()
				before := w.asked("a")
				if got := w.get("a", "/x"); got.body != truth {
					t.Errorf("byte %d, tagged %v: stored otherwise", at, tagged)
				}
				w.get("a", "/y")
				if n := w.peers["a"]; n.SiblingsAccused.Load() != 1 || w.asked("a") != before {
					t.Errorf("byte %d, tagged %v: accused %d times, %d requests since", at, tagged, n.SiblingsAccused.Load(), w.asked("a")-before)
				}
			})
		}
	}
}

// The checksums are passed on: b, whose copy came from a, sends those that a sent.
func TestSumsTravel(t *testing.T) {
	truth := strings.Repeat("x", 150_000)
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, validated(truth), "a", "b")
		defer w.close()
		w.get("a", "/x")
		synctest.Wait()
		w.get("b", "/x")
		synctest.Wait()
		for _, peer := range []string{"a", "b"} {
			got := w.get(peer, "/x", "Cache-Control: only-if-cached")
			sums, left, _ := strings.Cut(got.Header.Get("Summarycache-Body"), ";")
			if sums != sumsOf(truth) || (left != "") != (peer == "b") {
				t.Errorf("%s sends %q, want %q", peer, got.Header.Get("Summarycache-Body"), sumsOf(truth))
			}
			if got := w.get(peer, "/x"); got.Header["Summarycache-Body"] != nil {
				t.Errorf("%s sends it to a client", peer)
			}
		}
	})
}

// An answer whose statement is malformed is not used.
func TestBrokenStatement(t *testing.T) {
	for _, field := range []string{"nonsense", ":AAAA:", sumsOf("true") + ";left=-1", sumsOf(strings.Repeat("x", 65537)), "::", sumsOf("true") + ";left=0"} {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, cached("from the origin"), "a")
			defer w.close()
			w.fakePeer("c", holds("true", "Summarycache-Body: "+field, "Content-Length: 4"))
			w.claim("c", "/x")
			if got := w.get("a", "/x"); got.body != "from the origin" {
				t.Errorf("%q: %q", field, got.body)
			}
		})
	}
}

// A sibling with a wrong body is detected by comparison, whatever validators it repeats: the object
// is removed at all peers, the sibling is quarantined, and its earlier answers are fetched again.
func TestLiarIsFound(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 16<<10)
	for _, tt := range []struct {
		name, truth string
		lie         http.HandlerFunc
	}{
		{"another body", "true", forged("liar")},
		{"another length", "true", forged("made up")},
		{"another type", "true", forged("true", "Content-Type: text/html")},
		{"a cookie", "true", forged("true", "Set-Cookie: session=1")},
		{"a long body, in each block", long, forged(strings.ToUpper(long))},
		{"a long body of another length", long, forged(long + "x")},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := &invalidated{}
			w := newCluster(t, validated(tt.truth))
			w.tune = func(c *peerConfig) { c.Compare, c.Cluster = 1, told }
			w.start("a", t.TempDir())
			defer w.close()
			w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.RequestURI, "/honest") {
					forged(tt.truth, "Content-Type: text/plain; charset=utf-8")(rw, r)
					return
				}
				tt.lie(rw, r)
			})
			for _, path := range []string{"/honest", "/x", "/y"} {
				w.claim("c", path)
			}
			w.get("a", "/honest")
			synctest.Wait()
			if n := w.peers["a"]; n.SiblingsCompared.Load() != 1 || n.SiblingsRefuted.Load() != 0 {
				t.Fatalf("%s: a true answer was refuted, or not compared", tt.name)
			}
			w.get("a", "/x")
			synctest.Wait()
			n := w.peers["a"]
			if n.SiblingsCompared.Load() != 2 || n.SiblingsRefuted.Load() != 1 || n.SiblingsAccused.Load() != 1 {
				t.Errorf("%s: compared %d, refuted %d, accused %d", tt.name, n.SiblingsCompared.Load(), n.SiblingsRefuted.Load(), n.SiblingsAccused.Load())
			}
			if got := told.names(); len(got) != 1 || !strings.HasSuffix(got[0], "/x") {
				t.Errorf("%s: invalidated everywhere: %q", tt.name, got)
			}
			for _, path := range []string{"/x", "/y", "/honest"} {
				before := w.origin.count()
				if got := w.get("a", path); got.body != tt.truth || w.origin.count() != before+1 {
					t.Errorf("%s: then %s is %.20q, %d requests to the origin", tt.name, path, got.body, w.origin.count()-before)
				}
			}
			if w.asked("a") != 2 {
				t.Errorf("%s: the sibling with wrong bodies got %d requests", tt.name, w.asked("a"))
			}
		})
	}
}

// A sibling is not accused when the origin has changed its content, but it is when most of its
// answers differ from the origin's content.
func TestChangedOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := "v1"
		var mu sync.Mutex
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			mu.Lock()
			defer mu.Unlock()
			w.Header().Set("Cache-Control", "max-age=3600")
			w.Header().Set("Etag", strconv.Quote(version))
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(version+r.URL.Path)))
		})
		w.tune = func(c *peerConfig) { c.Compare = 1 }
		w.start("a", t.TempDir())
		w.start("b", t.TempDir())
		defer w.close()
		paths := []string{"/1", "/2", "/3", "/4", "/5"}
		for _, path := range paths {
			w.get("a", path)
		}
		synctest.Wait()
		w.get("b", "/1")
		synctest.Wait()
		mu.Lock()
		version = "v2"
		mu.Unlock()
		for i, path := range paths[1:] {
			w.get("b", path)
			synctest.Wait()
			time.Sleep(time.Minute) // suspensions
			n := w.peers["b"]
			if want := uint64(i / 2); i < 3 && (n.SiblingsRefuted.Load() != uint64(i+1) || n.SiblingsAccused.Load() != want) {
				t.Errorf("after %d changed: refuted %d, accused %d, want %d", i+1, n.SiblingsRefuted.Load(), n.SiblingsAccused.Load(), want)
			}
			if got := w.get("b", path); got.body != "v2"+path && i < 3 {
				t.Errorf("%s is %q, though it was refuted", path, got.body)
			}
			synctest.Wait()
		}
	})
}

// invalidated is a cluster that records invalidations.
type invalidated struct {
	mu  sync.Mutex
	all []string
}

func (c *invalidated) Invalidate(_ context.Context, targets ...invalidation.Target) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range targets {
		c.all = append(c.all, t.Name)
	}
	return nil
}

func (c *invalidated) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func (c *invalidated) Concerning(string) ([]invalidation.ID, bool) { return nil, true }
func (c *invalidated) Applied(...invalidation.ID) bool             { return true }
