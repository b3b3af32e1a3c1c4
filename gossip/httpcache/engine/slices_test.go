package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A range of what nobody has is one request for a slice. What is stored, here or at a sibling, is not
// requested again, whatever ranges clients want and wherever they begin and end.
func TestSlicesByRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10*sliceLength + 12345
		ranges := 200
		if testing.Short() { // with the race detector
			ranges = 40
		}
		w := newSliceWorld(t, size, "a", "b")
		defer w.close()
		part := func(name string, first, end int) {
			t.Helper()
			rec, res := w.get(name, fmt.Sprintf("Range: bytes=%d-%d", first, end-1))
			w.wantPart(rec, res, first, end)
			synctest.Wait()
		}
		part("a", 0, 1)
		w.wantAsked("the first byte", "bytes=0-1048575")
		part("a", sliceLength-1, sliceLength)
		w.wantAsked("the last byte of the slice")
		part("a", sliceLength-1, sliceLength+1)
		w.wantAsked("over the edge", "bytes=1048576-2097151")
		part("b", 5, 2*sliceLength)
		w.wantAsked("what the sibling has")
		part("b", size-1, size)
		w.wantAsked("the last byte", "bytes=10485760-11534335")
		rec, res := w.get("b", "Range: bytes=-5")
		w.wantPart(rec, res, size-5, size)
		w.wantAsked("the end")
		rec, res = w.get("a", "Range: bytes=-5")
		w.wantPart(rec, res, size-5, size)
		w.wantAsked("the end, from the sibling")
		for range ranges {
			first := rand.IntN(size)
			part([]string{"a", "b"}[rand.IntN(2)], first, first+1+rand.IntN(size-first))
		}
		if w.asked(); w.sent > size {
			t.Errorf("the origin sent %d bytes of %d", w.sent, size)
		}
		rec, res = w.get("a")
		w.wantPart(rec, res, 0, size)
		w.wantAsked("the whole")
		rec, _ = w.do("HEAD", "a")
		if rec.Code != 200 || rec.Header().Get("Content-Length") != fmt.Sprint(size) || rec.Header().Get("Content-Range") != "" {
			t.Errorf("HEAD: %d, %v", rec.Code, rec.Header())
		}
		rec, _ = w.get("a", `If-None-Match: "1"`)
		if rec.Code != 304 {
			t.Errorf("If-None-Match: %d", rec.Code)
		}
		rec, res = w.get("a", `If-Range: "1"`, fmt.Sprintf("Range: bytes=%d-", 5*sliceLength+5))
		w.wantPart(rec, res, 5*sliceLength+5, size)
		rec, res = w.get("a", `If-Range: "0"`, fmt.Sprintf("Range: bytes=%d-", 5*sliceLength+5))
		w.wantPart(rec, res, 0, size)
		rec, res = w.get("a", "Range: bytes=0-1,5-6")
		w.wantPart(rec, res, 0, size)
		rec, _ = w.get("a", fmt.Sprintf("Range: bytes=%d-", size))
		if rec.Code != 416 || rec.Header().Get("Content-Range") != fmt.Sprintf("bytes */%d", size) {
			t.Errorf("beyond the end: %d, %v", rec.Code, rec.Header())
		}
		rec, res = w.get("a", "Cache-Control: only-if-cached")
		w.wantPart(rec, res, 0, size)
		w.wantAsked("these")
	})
}

// A whole that turns out to be large is kept in slices from its first answer on.
func TestSlicesOfWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 9 * sliceLength
		w := newSliceWorld(t, size, "a", "b", "c")
		defer w.close()
		rec, res := w.get("a")
		w.wantPart(rec, res, 0, size)
		asked := w.asked()
		if len(asked) != 9 || asked[0] != "" || slices.Contains(asked, "bytes=0-1048575") {
			t.Errorf("the origin was asked for %q", asked)
		}
		rec, res = w.get("b")
		w.wantPart(rec, res, 0, size)
		if w.wantAsked("the whole at a sibling", ""); w.sent > size+sliceLength*5/4 {
			t.Errorf("the origin sent %d bytes of %d", w.sent, size)
		}
		w.down = true
		rec, res = w.get("c")
		w.wantPart(rec, res, 0, size)
		w.wantAsked("the whole while the origin is down", "")
		rec, res = w.get("c")
		w.wantPart(rec, res, 0, size)
		w.wantAsked("and again")
		if rec, _ := w.get("a", "Cache-Control: only-if-cached", "Range: bytes=5-8000000"); rec.Code != 206 {
			t.Errorf("only-if-cached: %d", rec.Code)
		}
	})
}

// What cannot be sliced is requested as a whole, or in the part that the client wants, and this is remembered.
func TestUnsliced(t *testing.T) {
	for name, c := range map[string]struct {
		tune  func(*sliceWorld)
		asked []string
	}{
		"no Range":            {func(w *sliceWorld) { w.ignores = true }, []string{"bytes=0-1048575"}},
		"a weak validator":    {func(w *sliceWorld) { w.tag = `W/"1"` }, []string{"bytes=0-1048575", ""}},
		"no validator":        {func(w *sliceWorld) { w.tag = "" }, []string{"bytes=0-1048575", ""}},
		"a lie about lengths": {func(w *sliceWorld) { w.rewrite = func(h http.Header) { h.Set("Content-Range", "bytes 0-99/100") } }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 9 * sliceLength
				w := newSliceWorld(t, size, "a")
				defer w.close()
				c.tune(w)
				rec, res := w.get("a", "Range: bytes=5-6")
				if name == "a lie about lengths" {
					return // the answer is the origin's affair
				}
				w.wantPart(rec, res, 5, 7)
				w.wantAsked("a range", c.asked...)
				rec, res = w.get("a")
				w.wantPart(rec, res, 0, size)
				rec, res = w.get("a", "Range: bytes=5000000-9000000")
				w.wantPart(rec, res, 5000000, 9000001)
				w.wantAsked("the whole, and a range of it")
			})
		})
	}
}

// What an origin answers to the request for a slice is stored only if it is the slice or the whole.
func TestErrorToSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSliceWorld(t, 3*sliceLength, "a")
		defer w.close()
		w.refused = 404
		for range 2 {
			if rec, _ := w.get("a", "Range: bytes=2000000-2000001"); rec.Code != 404 {
				t.Errorf("%d, want the origin's 404", rec.Code)
			}
		}
		w.wantAsked("what is refused", "bytes=1048576-2097151", "bytes=1048576-2097151")
		w.refused = 0
		rec, res := w.get("a", "Range: bytes=2000000-2000001")
		w.wantPart(rec, res, 2000000, 2000002)
	})
}

// Versions never mix. If the origin has another version, an answer that has begun is broken off, and
// the next one is of the new version.
func TestSlicesOfVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 9 * sliceLength
		w := newSliceWorld(t, size, "a", "b")
		defer w.close()
		w.get("a", "Range: bytes=0-3000000")
		w.asked()
		old := w.body
		w.mu.Lock()
		w.tag, w.body = `"2"`, bytes.Repeat([]byte{7}, size+5)
		w.mu.Unlock()
		rec, res := w.get("a")
		if res.Err == nil || !res.Broken || !bytes.HasPrefix(old, rec.Body.Bytes()) {
			t.Errorf("an answer of which the origin has another version: %d bytes, %v", rec.Body.Len(), res.Err)
		}
		rec, res = w.get("a")
		w.wantPart(rec, res, 0, size+5)
		// b gets the new version, though a sibling still lists a slice of the old one.
		w.get("b", "Range: bytes=5000000-5000001")
		w.mu.Lock()
		w.tag, w.body = `"3"`, bytes.Repeat([]byte{8}, size+9)
		w.mu.Unlock()
		w.caches["a"].Purge(TargetOf("http://origin.test/x"))
		rec, res = w.get("a")
		w.wantPart(rec, res, 0, size+9)
	})
}

// Stale slices are validated by the first of them; a soft purge makes all stale, and a purge removes all.
func TestSlicesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 9 * sliceLength
		w := newSliceWorld(t, size, "a")
		defer w.close()
		w.get("a", "Range: bytes=0-")
		w.asked()
		e := w.caches["a"].Explain(httptest.NewRequest("GET", "http://origin.test/x", nil))
		if e.Verdict != WouldHit || len(e.Stored) != 9 || !e.Stored[0].Selected || e.Stored[1].Selected || e.Stored[8].From != 8*sliceLength || e.Stored[8].Whole != size || !e.Stored[8].Listed {
			t.Errorf("explained by %+v", e)
		}
		time.Sleep(2 * time.Minute)
		rec, res := w.get("a")
		w.wantPart(rec, res, 0, size)
		w.wantAsked("stale", "bytes=0-1048575")
		soft := TargetOf("http://origin.test/x")
		soft.Soft = true
		if n := w.caches["a"].Purge(soft); n != 9 {
			t.Errorf("a soft purge made %d slices stale", n)
		}
		rec, res = w.get("a")
		w.wantPart(rec, res, 0, size)
		w.wantAsked("after a soft purge", "bytes=0-1048575")
		time.Sleep(2 * time.Minute)
		w.down = true
		rec, res = w.get("a")
		w.wantPart(rec, res, 0, size)
		if !res.Stale {
			t.Error("the answer is not marked as stale")
		}
		w.down = false
		if n := w.caches["a"].Purge(below("http://origin.test/")); n != 9 {
			t.Errorf("a purge removed %d slices", n)
		}
		if w.mu.Lock(); len(w.advertised["a"]) > 0 {
			t.Errorf("advertised after a purge: %v", w.advertised["a"])
		}
		w.mu.Unlock()
		w.asked()
		w.get("a", "Range: bytes=0-5")
		w.wantAsked("after a purge", "bytes=0-1048575")
	})
}

// A sibling that breaks off each slice costs no client a byte.
func TestSlicesOfBrokenSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 9 * sliceLength
		w := newSliceWorld(t, size, "a", "b")
		defer w.close()
		w.get("a", "Range: bytes=0-")
		synctest.Wait()
		w.dead = "a"
		for _, fields := range [][]string{{"Range: bytes=100-"}, nil} {
			rec, res := w.get("b", fields...)
			if len(fields) > 0 {
				w.wantPart(rec, res, 100, size)
			} else {
				w.wantPart(rec, res, 0, size)
			}
		}
	})
}

// A slice comes from a sibling that has the whole, and the next from an origin that sends no ranges and does not say
// how long the whole is.
func TestSliceOfChunkedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 9 * sliceLength
		w := newSliceWorld(t, size, "a", "b")
		defer w.close()
		w.ignores, w.chunked = true, true
		w.get("a")
		synctest.Wait()
		w.get("b", "Range: bytes=0-99")
		synctest.Wait()
		w.dead = "a"
		rec, res := w.get("b", "Range: bytes=5-3000000")
		w.wantPart(rec, res, 5, 3000001)
	})
}

// A large object whose answers could not be shared a moment ago is requested once, as a whole.
func TestUnslicedForOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 9 * sliceLength
		w := newSliceWorld(t, size, "a")
		defer w.close()
		c := w.caches["a"]
		c.hitForMiss.add("http://origin.test/x", c.now(), time.Minute)
		rec, res := w.get("a")
		w.wantPart(rec, res, 0, size)
		w.wantAsked("the whole", "")
	})
}

// A slice that a sibling gave is compared with the origin's, at its place in the whole.
func TestSlicesCompared(t *testing.T) {
	for _, lies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const size = 9*sliceLength + 100
			w := newSliceWorld(t, size, "a", "b")
			defer w.close()
			b := w.caches["b"]
			b.Tune(Tuning{Compare: 1, BetweenBytesTimeout: 20 * time.Second})
			w.get("a", "Range: bytes=3000000-")
			synctest.Wait() // until all of it is stored
			w.asked()
			if lies {
				w.mu.Lock()
				w.body = bytes.Repeat([]byte{7}, size)
				w.mu.Unlock()
			}
			w.get("b", "Range: bytes=3200000-3200001")
			if !lies { // else a may be quarantined by now
				w.get("b", fmt.Sprintf("Range: bytes=%d-", size-5))
			}
			asked := w.asked()
			for _, part := range asked {
				var first, last int
				if n, _ := fmt.Sscanf(part, "bytes=%d-%d", &first, &last); n != 2 || last-first >= sliceLength || first < 2*sliceLength || first >= size {
					t.Errorf("the origin was asked for %q", asked)
				}
			}
			want := uint64(len(asked))
			if compared, refuted := b.SiblingsCompared.Load(), b.SiblingsRefuted.Load(); want == 0 || compared != want || (refuted > 0) != lies {
				t.Errorf("lies %v: %d comparisons, %d different; the origin was asked %d times", lies, compared, refuted, want)
			}
		})
	}
}

// Slices of a response that varies are those of the variant that the client selects, and siblings find them.
func TestSlicesVary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 3 * sliceLength
		w := newSliceWorld(t, size, "a", "b")
		defer w.close()
		w.rewrite = func(h http.Header) { h.Set("Vary", "Accept-Encoding") }
		for _, step := range []struct {
			peer, coding string
			asked        []string
		}{
			{"a", "gzip", []string{"bytes=0-1048575", "bytes=1048576-2097151"}},
			{"a", "gzip", nil},
			{"a", "br", []string{"bytes=0-1048575", "bytes=1048576-2097151"}},
			{"b", "br", nil},
			{"b", "gzip", nil},
		} {
			rec, res := w.get(step.peer, "Range: bytes=1000000-1100000", "Accept-Encoding: "+step.coding)
			w.wantPart(rec, res, 1000000, 1100001)
			w.wantAsked(step.peer+" for "+step.coding, step.asked...)
		}
	})
}

// A digest that falsely lists an object costs a request to that sibling, and not one for each slice.
func TestSlicesOfFalsePositive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSliceWorld(t, 30*sliceLength, "a", "b")
		defer w.close()
		w.advertised["b"][rfc9111.Identity("http://origin.test/x", nil, nil)] = 1
		if rec, res := w.get("a"); res.Err != nil || !bytes.Equal(rec.Body.Bytes(), w.body) {
			t.Fatal(res.Err, rec.Body.Len())
		}
		if n := w.caches["a"].cfg.Siblings.Stats().FalseHits; n != 1 {
			t.Errorf("%d false hits, want 1", n)
		}
	})
}

// A client that leaves costs no more than what is read ahead.
func TestSlicesOfGoneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSliceWorld(t, 30*sliceLength, "a")
		defer w.close()
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequest("GET", "http://origin.test/x", nil).WithContext(ctx)
		r.Header.Set("Range", "bytes=0-")
		rec := &leavingClient{ResponseRecorder: httptest.NewRecorder(), after: 3 * sliceLength / 2, leave: cancel}
		if res := w.caches["a"].Serve(rec, r); res.Err == nil {
			t.Error("no error")
		}
		if asked := w.asked(); len(asked) > 2+readAhead {
			t.Errorf("the origin was asked for %q", asked)
		}
	})
}

type leavingClient struct {
	*httptest.ResponseRecorder
	after int
	leave func()
}

func (c *leavingClient) Write(p []byte) (int, error) {
	if c.after -= len(p); c.after < 0 {
		c.leave()
		return 0, io.ErrClosedPipe
	}
	return c.ResponseRecorder.Write(p)
}

// A disk that is full from some slice on cuts no answer, whether the origin or a sibling has the rest, in
// parts or as a whole alone; and a client that wants the whole gets no part.
func TestSlicesWithoutRoom(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		for room := range int64(4) {
			synctest.Test(t, func(t *testing.T) {
				const size = 9*sliceLength + 777
				w := newSliceWorld(t, size, "a", "b")
				defer w.close()
				w.ignores = ignores
				rec, res := w.get("a")
				w.wantPart(rec, res, 0, size)
				synctest.Wait()
				w.room.Store(room)
				rec, res = w.get("b", fmt.Sprintf("Range: bytes=%d-%d", 5, 3*sliceLength))
				if rec.Code == 200 { // an origin without ranges
					w.wantPart(rec, res, 0, size)
				} else {
					w.wantPart(rec, res, 5, 3*sliceLength+1)
				}
				synctest.Wait()
				w.room.Store(room)
				if rec, res = w.get("b"); rec.Code != 200 {
					t.Errorf("%v, room for %d: a whole is answered with %d", ignores, room, rec.Code)
				}
				w.wantPart(rec, res, 0, size)
				synctest.Wait()
			})
		}
	}
}

// lateMisses is a store whose news are old: what it has not got may have come meanwhile.
type lateMisses struct{ bodies.Store }

func (s lateMisses) Get(key string) (bodies.Object, bool) {
	o, ok := s.Store.Get(key)
	if !ok {
		time.Sleep(time.Millisecond)
	}
	return o, ok
}

// A slice that another fetch has stored between the lookup and the beginning of a fetch is not requested again.
func TestSlicesComeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSliceWorld(t, 20*sliceLength, "a")
		defer w.close()
		w.caches["a"].store = lateMisses{w.caches["a"].store}
		rec, res := w.get("a", "Range: bytes=10-")
		w.wantPart(rec, res, 10, 20*sliceLength)
		synctest.Wait()
		if n := len(w.asked()); n != 20 {
			t.Errorf("%d requests for 20 slices", n)
		}
	})
}
