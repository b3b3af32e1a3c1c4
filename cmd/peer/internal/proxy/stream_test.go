package proxy

import (
	"crypto/sha256"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// fixed is a Locator that always returns one peer.
type fixed struct{ addr string }

func (f *fixed) Candidates(dst []sibling.Candidate, _ string) []sibling.Candidate {
	if f.addr == "" {
		return dst
	}
	return append(dst, sibling.Candidate{Peer: "other", Service: f.addr})
}
func (f *fixed) Distrust(string) {}

// TestBigBody passes on a body that is much longer than the memory that it may use: from the origin
// to two clients at once, from a sibling, and from the store.
func TestBigBody(t *testing.T) {
	bigBody := 256 << 20 // so long that a copy of it in memory would be noticed
	if testing.Short() { // with the race detector
		bigBody = 32 << 20
	}
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * i >> 8)
	}
	var fetches atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Content-Length", strconv.Itoa(bigBody))
		for range bigBody / len(block) {
			if _, err := w.Write(block); err != nil {
				return // begun beside a source that seemed to stand still, and in vain
			}
		}
		fetches.Add(1)
	}))
	defer origin.Close()
	target, _ := url.Parse(origin.URL)
	locators := []*fixed{{}, {}}
	var servers []*httptest.Server
	var handlers []*Handler
	for i, name := range []string{"a", "b"} {
		h, err := New(Config{Settings: Settings{Origin: target}, Config: engine.Config{Name: name}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 2 << 30, MemoryBytes: 8 << 20},
			Locator: locators[i], SiblingTimeout: time.Minute}) // a busy machine is not what is tested
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(h)
		defer h.Close()
		defer s.Close()
		servers, handlers = append(servers, s), append(handlers, h)
	}
	want := sha256.New()
	for range bigBody / len(block) {
		want.Write(block)
	}
	peak := watchHeap(t)
	get := func(s *httptest.Server) {
		resp, err := http.Get(s.URL + "/big")
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		got := sha256.New()
		n, err := io.Copy(got, resp.Body)
		if err != nil || n != int64(bigBody) || !sameSum(got, want) {
			t.Errorf("%d bytes, %v, Cache-Status %q", n, err, resp.Header["Cache-Status"])
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { get(servers[0]) })
	wg.Go(func() { get(servers[0]) })
	wg.Wait()
	locators[1].addr = servers[0].Listener.Addr().String()
	get(servers[1])
	get(servers[0])
	// On a busy machine the sibling may be so late that a hedge goes to the origin, or that the rest of its body does.
	var late uint64
	for _, h := range handlers {
		c := h.Counters()
		late += c.Hedges + c.BodiesTakenOver
	}
	if n := fetches.Load(); n < 1 || n > 1+int64(late) {
		t.Errorf("%d fetches, %d of them since others were late: %+v, %+v", n, late, handlers[0].Counters(), handlers[1].Counters())
	}
	if p := peak(); p > 64<<20 {
		t.Errorf("the heap grew to %d MiB for a body of %d", p>>20, bigBody>>20)
	}
}

// TestBodyFasterThanItsClient receives bodies that arrive before the waiting requests are woken,
// which is nearly always so on one processor. They must not be dropped although nobody has begun to
// read them.
func TestBodyFasterThanItsClient(t *testing.T) {
	const size = 64 << 20
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	target, _ := url.Parse("http://origin.test")
	h, err := New(Config{Settings: Settings{Origin: target}, Config: engine.Config{Name: "a"}, Store: diskstore.Options{Dir: t.TempDir(), MaxBytes: 2 << 30, MemoryBytes: 8 << 20}, OriginTransport: instant{size}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	bodies := 5
	if testing.Short() { // with the race detector
		bodies = 1
	}
	for i := range bodies {
		r := httptest.NewRequest(http.MethodGet, "http://origin.test/"+strconv.Itoa(i), nil)
		w := &counter{ResponseRecorder: *httptest.NewRecorder()}
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("request %d: %v after %d bytes", i, p, w.n)
				}
			}()
			h.ServeHTTP(w, r)
		}()
		if w.n != size {
			t.Errorf("request %d: %d of %d bytes", i, w.n, size)
		}
	}
}

// counter is a client that only counts bytes.
type counter struct {
	httptest.ResponseRecorder
	n int
}

func (c *counter) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

// instant is an origin that answers every request at once with size zero bytes.
type instant struct{ size int64 }

func (o instant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: o.size,
		Header: http.Header{"Cache-Control": {"max-age=600"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body:   io.NopCloser(io.LimitReader(zeros{}, o.size))}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func sameSum(a, b hash.Hash) bool { return string(a.Sum(nil)) == string(b.Sum(nil)) }

// watchHeap samples the heap until the returned function is called, which returns the maximum in
// use.
func watchHeap(t *testing.T) func() uint64 {
	stop, done := make(chan struct{}), make(chan struct{})
	var peak uint64
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 { close(stop); <-done; return peak }
}
