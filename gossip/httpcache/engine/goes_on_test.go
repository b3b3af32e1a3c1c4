package engine

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var allFaults = flag.Bool("faults", false, "run every combination of faults")

// content returns a body that differs from that of any other seed at every place.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

// inShort reports whether a case is one of those that -short runs, with the race detector: every
// nth. n has no divisor in common with the numbers of values that the cases combine, so that each
// value is in some of them.
func inShort(cases *int, n int) bool {
	*cases++
	return !testing.Short() || *cases%n == 0
}

// A faulty origin sends its first answers only up to a byte, and the others whole.
type faulty struct {
	body     []byte
	next     []byte // of all answers but the first; nil = the same
	fault    string // "stall", "cut", or "crawl": a byte every half second
	at       int
	times    int // answers that fail; 0 = 1
	tag      string
	nextTag  string // "" = the same
	ranges   bool   // it knows Range
	unsized  bool   // it doesn't say how long the body is
	fields   string // a further one: "Name: value"
	mu       sync.Mutex
	inRanges int // answers of 206
}

func (o *faulty) serve(w http.ResponseWriter, r *http.Request, n int) {
	body, tag := o.body, o.tag
	if n > 0 && o.next != nil {
		body = o.next
	}
	if n > 0 && o.nextTag != "" {
		tag = o.nextTag
	}
	h := w.Header()
	h.Set("Cache-Control", "max-age=600")
	if tag != "" {
		h.Set("ETag", tag)
	}
	if name, value, ok := strings.Cut(o.fields, ": "); ok {
		h.Set(name, value)
	}
	if !o.unsized {
		h.Set("Content-Length", fmt.Sprint(len(body)))
	}
	from, end := 0, len(body)
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &end); n > 0 && o.ranges && (r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == tag) {
		if n == 2 {
			end++
		}
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, end-1, len(body)))
		if !o.unsized {
			h.Set("Content-Length", fmt.Sprint(end-from))
		}
		w.WriteHeader(206)
		o.mu.Lock()
		o.inRanges++
		o.mu.Unlock()
	} else {
		from, end = 0, len(body)
		w.WriteHeader(200)
	}
	if n >= max(o.times, 1) {
		w.Write(body[from:end])
		return
	}
	first := from
	from = min(max(o.at, first), end)
	w.Write(body[first:from])
	w.(http.Flusher).Flush()
	if first < from && from == end && end < len(body) { // a slice that the fault does not concern
		return
	}
	switch o.fault {
	case "cut":
		panic(http.ErrAbortHandler)
	case "crawl":
		for i := range body[from:end] {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(500 * time.Millisecond):
			}
			w.Write(body[from+i:][:1])
			w.(http.Flusher).Flush()
		}
	}
	<-r.Context().Done()
}

// A body that stops anywhere is finished from another source, byte for byte, for all its readers.
// If the origin has another version by now, nobody gets a mixture.
func TestResume(t *testing.T) {
	const size = 200_000
	body, other := content(1, size), content(2, size)
	tests := 0
	for _, fault := range []string{"stall", "cut"} {
		for _, at := range []int{0, 1, 100, 65_535, 65_536, 131_072, size - 1} {
			for _, validator := range []string{"none", "weak", "strong", "strong, no ranges", "changed", "changed, untold", "unsized"} {
				for _, clients := range []int{1, 2, 5} {
					for _, sibling := range []bool{false, true} {
						if tests++; !*allFaults && tests%5 != 0 || testing.Short() && tests%25 != 0 {
							continue
						}
						o := &faulty{body: body, fault: fault, at: at}
						switch validator {
						case "weak":
							o.tag = `W/"a"`
						case "strong":
							o.tag, o.ranges = `"a"`, true
						case "strong, no ranges":
							o.tag = `"a"`
						case "changed":
							o.tag, o.nextTag, o.next, o.ranges = `"a"`, `"b"`, other, true
						case "changed, untold":
							o.next = other
						case "unsized":
							o.unsized = true
						}
						name := fmt.Sprintf("%s at %d, validator %s, %d clients, sibling=%v", fault, at, validator, clients, sibling)
						synctest.Test(t, func(t *testing.T) { resume(t, name, o, clients, sibling) })
					}
				}
			}
		}
	}
}

func resume(t *testing.T, name string, o *faulty, clients int, sibling bool) {
	w := newCluster(t, o.serve, "a", "b")
	defer w.close()
	changed := o.next != nil
	together := clients // at a
	if sibling {
		together--
	}
	var all sync.WaitGroup
	start := time.Now()
	for i := range clients {
		peer := "a"
		if sibling && i == clients-1 {
			peer = "b"
		}
		all.Go(func() {
			time.Sleep(time.Duration(i) * 300 * time.Millisecond)
			r, err := w.try(peer, "GET", "/x", "")
			took := time.Since(start)
			switch got := []byte(r.body); {
			case bytes.Equal(got, o.body), changed && bytes.Equal(got, o.next):
				if limit := 4 * time.Second; took > limit && (together > 1 || o.fault == "cut") {
					t.Errorf("%s: client %d waited for %v", name, i, took)
				}
			case err == nil && r.err == nil:
				t.Errorf("%s: client %d: %d bytes as if they were all", name, i, len(got))
			case !changed:
				t.Errorf("%s: client %d: cut after %d bytes and %v: %v %v", name, i, len(got), took, err, r.err)
			case err == nil && !bytes.HasPrefix(o.body, got) && !bytes.HasPrefix(o.next, got):
				t.Errorf("%s: client %d: a mixture", name, i)
			}
		})
	}
	all.Wait()
	if took := time.Since(start); took > 65*time.Second {
		t.Errorf("%s: %v in all", name, took)
	}
	want := o.body
	if changed {
		want = o.next
	}
	for _, peer := range []string{"a", "b"} { // and so is what is kept
		if r := w.get(peer, "/x"); r.err != nil || !bytes.Equal([]byte(r.body), want) && !bytes.Equal([]byte(r.body), o.body) {
			t.Errorf("%s: then %s has %d bytes, %v", name, peer, len(r.body), r.err)
		}
	}
}

// Two versions differ only in their bytes, and the source of the first ends or stalls before its
// first byte. The other version is then sent with its own header, or not at all.
func TestHeaderAndBodyBelongTogether(t *testing.T) {
	const size = 10_000
	for _, control := range []string{"max-age=600", "private"} {
		for _, fault := range []string{"cut", "stall"} {
			for _, clients := range []int{1, 3} {
				synctest.Test(t, func(t *testing.T) {
					w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
						w.Header().Set("Cache-Control", control)
						w.Header().Set("X-Version", fmt.Sprint(n))
						w.Header().Set("Content-Length", fmt.Sprint(size))
						w.WriteHeader(http.StatusOK)
						w.(http.Flusher).Flush()
						switch {
						case n > 0:
							w.Write(content(uint64(n), size))
						case fault == "cut":
							panic(http.ErrAbortHandler)
						default:
							<-r.Context().Done()
						}
					}, "a")
					defer w.close()
					var all sync.WaitGroup
					for range clients {
						all.Go(func() {
							r, err := w.try("a", "GET", "/x", "")
							if control == "private" && err == nil && r.StatusCode >= http.StatusInternalServerError {
								return // nobody may have its rest
							}
							if n, _ := strconv.Atoi(r.Header.Get("X-Version")); err != nil || r.err != nil || r.body != string(content(uint64(n), size)) {
								t.Errorf("%s, %s, %d clients: version %d, %d bytes, %v, %v", control, fault, clients, n, len(r.body), err, r.err)
							}
						})
					}
					all.Wait()
				})
			}
		}
	}
}

// rogue starts a sibling that is not one of the peers, and advertises the objects of o.
func (w *cluster) rogue(name string, o *faulty) {
	w.claim(name, "/x")
	w.fakePeer(name, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Status", name+"; hit")
		rw.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		o.serve(rw, r, 0)
	})
}

// A sibling that stops, breaks off or crawls within a body delays clients by less than two seconds,
// and the origin sends only the bytes that are missing.
func TestFaultySibling(t *testing.T) {
	cases := 0
	for _, fault := range []string{"stall", "cut", "crawl"} {
		for _, at := range []int{0, 1, 100_000, 999_000} {
			for _, tag := range []string{"", `"a"`} {
				if !inShort(&cases, 5) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					o := &faulty{body: content(1, 1_000_000), fault: fault, at: at, tag: tag, ranges: true}
					w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) { o.serve(rw, r, n+1) }, "a")
					defer w.close()
					if fault == "crawl" {
						w.learnPace("a", "/other")
					}
					w.rogue("c", o)
					start := time.Now()
					limit := 2 * time.Second
					if fault == "crawl" {
						limit = 4 * time.Second
						if at == 999_000 {
							return // it goes on as it does: it isn't worth it
						}
					}
					r := w.get("a", "/x")
					if took := time.Since(start); r.body != string(o.body) || took > limit {
						t.Errorf("%s at %d, tag %s: %d bytes, %v after %v; %s", fault, at, tag, len(r.body), r.err, took, r.status())
					}
					time.Sleep(time.Minute)
				})
			}
		}
	}
}

// When an origin crawls through an answer and a second client waits for it, another fetch takes
// over, whatever the validator. If the origin has another version by now, later clients get that
// one, and the others get the first one, although slowly.
func TestCrawlingOrigin(t *testing.T) {
	body, other := content(1, 200_000), content(2, 200_000)
	for _, tag := range []string{"", `W/"a"`, `"a"`} {
		for _, at := range []int{1, 100_000} {
			for _, replaced := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					o := &faulty{body: body, fault: "crawl", at: at, tag: tag, ranges: true}
					if replaced {
						o.next = other
						if tag == `"a"` {
							o.nextTag = `"b"`
						}
					}
					w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
						if n == 1 {
							o.serve(rw, r, 0)
						} else {
							o.serve(rw, r, 1)
						}
					}, "a")
					w.learnPace("a", "/other")
					time.Sleep(time.Second)
					defer w.close()
					var all sync.WaitGroup
					for client := range 2 {
						all.Go(func() {
							start := time.Now()
							conn, resp, err := w.open("a")
							if err != nil {
								t.Errorf("tag %s, crawl at %d: client %d: %v", tag, at, client, err)
								return
							}
							defer conn.Close()
							conn.SetDeadline(start.Add(time.Minute))
							got, err := io.ReadAll(resp.Body)
							if replaced && client == 1 && bytes.Equal(got, other) {
								return // it came just after that was found
							}
							if whole := err == nil && len(got) == len(body); !bytes.HasPrefix(body, got) || whole == replaced || whole && time.Since(start) > 35*time.Second {
								t.Errorf("tag %s, crawl at %d, replaced %v: client %d got %d bytes in %v, right %v; %v",
									tag, at, replaced, client, len(got), time.Since(start), bytes.HasPrefix(body, got), err)
							}
						})
						time.Sleep(30 * time.Second)
					}
					start := time.Now()
					if r := w.get("a", "/x"); replaced && (r.body != string(other) || time.Since(start) > time.Second) {
						t.Errorf("tag %s, crawl at %d: %d bytes, %v after %v; %s", tag, at, len(r.body), r.err, time.Since(start), r.status())
					}
					all.Wait()
				})
			}
		}
	}
}

// If the header was delivered and no source can finish the body, no client gets an error as long as
// no byte was sent: the request starts again with what the origin has now, and fails with a status
// only if that is nothing.
func TestNothingSent(t *testing.T) {
	for _, fault := range []string{"stall", "cut"} {
		for _, fails := range []bool{false, true} {
			for _, clients := range []int{1, 4} {
				synctest.Test(t, func(t *testing.T) {
					const size = 200_000
					body, other := content(1, size), content(2, size)
					o := &faulty{body: other, tag: `"b"`, ranges: true}
					w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
						if fails {
							panic(http.ErrAbortHandler)
						}
						o.serve(rw, r, n+1)
					}, "a")
					defer w.close()
					w.rogue("c", &faulty{body: body, fault: fault, tag: `"a"`, ranges: true})
					var all sync.WaitGroup
					for i := range clients {
						all.Go(func() {
							time.Sleep(time.Duration(i) * 100 * time.Millisecond)
							start := time.Now()
							r := w.get("a", "/x")
							switch took := time.Since(start); {
							case fails && r.StatusCode < 500, !fails && (r.err != nil || r.body != string(other)):
								t.Errorf("%s, origin fails=%v, client %d: status %d, %d bytes, %v after %v; %s", fault, fails, i, r.StatusCode, len(r.body), r.err, took, r.status())
							case took > 4*time.Second && !fails:
								t.Errorf("%s: client %d waited for %v", fault, i, took)
							}
						})
					}
					all.Wait()
					if n := w.origin.count(); !fails && n > 3 {
						t.Errorf("%s, %d clients: the origin got %d requests", fault, clients, n)
					}
				})
			}
		}
	}
}

// A lookup request to a sibling that is known to be dead ends at once.
func TestDeadSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &faulty{body: content(1, 1_000_000), fault: "stall", at: 500_000, tag: `"a"`, ranges: true}
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) { o.serve(rw, r, n+1) }, "a")
		defer w.close()
		w.rogue("c", o)
		start := time.Now()
		time.AfterFunc(300*time.Millisecond, func() { w.peers["a"].siblings.Gone("c") })
		if r := w.get("a", "/x"); r.body != string(o.body) || time.Since(start) > 400*time.Millisecond {
			t.Errorf("%d bytes, %v after %v", len(r.body), r.err, time.Since(start))
		}
		if a := w.peers["a"]; a.BodiesResumed.Load() != 1 || a.siblings.Stats().Errors != 1 {
			t.Errorf("%d bodies resumed, %+v", a.BodiesResumed.Load(), a.siblings.Stats())
		}
	})
}
