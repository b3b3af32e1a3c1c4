package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// What may follow each state, as the package comment draws it.
var (
	fetchLeads = [...][]fetchState{
		fetchAsks:       {fetchFailed, fetchStale, fetchConfirmed, fetchHandedOver, fetchReceives},
		fetchFailed:     nil,
		fetchStale:      nil,
		fetchConfirmed:  nil,
		fetchHandedOver: nil,
		fetchReceives:   {fetchDelivers, fetchAsks, fetchFailed},
		fetchDelivers:   {fetchStored, fetchUnstored, fetchCut},
		fetchStored:     nil,
		fetchUnstored:   nil,
		fetchCut:        nil,
	}
)

// A model is a cache between clients, siblings and an origin that answer, pause and break off at random.
type model struct {
	t       *testing.T
	seed    uint64
	sources atomic.Uint64 // requests to them
	version atomic.Int64  // of all objects at the origin
	changed atomic.Int64  // when it became that, in seconds of Unix

	mu    sync.Mutex
	shown map[string]int64 // by path, the version that the last reload has shown
}

// change makes all objects of the origin new.
func (m *model) change() {
	m.changed.Store(time.Now().Unix())
	m.version.Add(1)
}

// noteShown notes the version that a reload has shown. shownSo returns the last one.
func (m *model) noteShown(path string, version int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown[path] = max(m.shown[path], version)
}

func (m *model) shownSo(path string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown[path]
}

// modelLengths are those of the objects, by the last digit of their path: it is also how they are described.
var modelLengths = []int{0, 1000, 90_000, 300_000, 700_000}

func modelBody(path string, version int64) []byte {
	kind, _ := strconv.Atoi(path[len(path)-1:])
	b := bytes.Repeat(fmt.Append(nil, path, " ", version, ";"), 1+modelLengths[kind/2]/5)
	return b[:modelLengths[kind/2]]
}

// RoundTrip answers as the origin or, if the request is for a cache only, as a sibling.
func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	rng := rand.New(rand.NewPCG(m.seed, m.sources.Add(1)))
	asSibling := strings.Contains(r.Header.Get("Cache-Control"), "only-if-cached")
	time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
	target := r.URL.String() // a sibling gets its absolute form
	path := target[strings.LastIndexByte(target, '/'):]
	version, date := m.version.Load(), time.Now()
	if asSibling && rng.IntN(4) == 0 && version > 0 {
		version, date = version-1, time.Unix(m.changed.Load()-1, 0)
	}
	h := http.Header{"Cache-Control": {"stale-if-error=60, max-age=" + strconv.Itoa(1+rng.IntN(20))}, "Version": {fmt.Sprint(version)},
		"Date": {date.UTC().Format(http.TimeFormat)}}
	body, status := modelBody(path, version), 200
	etag := fmt.Sprintf("%q", fmt.Sprint(path, version))
	if strings.HasSuffix(path, "1") || strings.HasSuffix(path, "3") || strings.HasSuffix(path, "5") {
		etag = ""
	} else {
		h["Etag"] = []string{etag}
	}
	switch fate := rng.IntN(20); {
	case asSibling && fate < 8:
		h, status, body = http.Header{}, 504, nil
	case fate == 19:
		return nil, io.ErrUnexpectedEOF
	case fate == 18:
		h, status, body = http.Header{}, 503, nil
	case fate == 17:
		h["Cache-Control"] = []string{"private"}
	case etag != "" && r.Header.Get("If-None-Match") == etag:
		status, body = 304, nil
	case etag != "" && r.Header.Get("If-Range") == etag:
		var from int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		if from < len(body) {
			h["Content-Range"] = []string{fmt.Sprintf("bytes %d-%d/%d", from, len(body)-1, len(body))}
			status, body = 206, body[from:]
		}
	}
	if asSibling && status != 504 {
		h["Cache-Status"] = []string{"b; hit"}
	}
	resp := &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: h,
		ContentLength: int64(len(body))}
	if rng.IntN(4) == 0 && status == 200 {
		resp.ContentLength = -1
	}
	resp.Body = &modelSource{ctx: r.Context(), rng: rng, rest: body, breaks: rng.IntN(3) == 0, stalls: rng.IntN(4) == 0, sized: resp.ContentLength >= 0}
	return resp, nil
}

// A modelSource sends a body in pieces. It may break off, or pause for a second, or for a minute.
type modelSource struct {
	ctx                   context.Context
	rng                   *rand.Rand
	rest                  []byte
	breaks, stalls, sized bool
}

func (s *modelSource) Read(p []byte) (int, error) {
	if s.sized && len(s.rest) == 0 { // whoever knows the length waits for no end
		return 0, io.EOF
	}
	pause, breaks := time.Duration(s.rng.IntN(40))*time.Millisecond, s.breaks && s.rng.IntN(5) == 0
	if s.stalls && s.rng.IntN(4) == 0 {
		long := []time.Duration{siblingStall, stallTime, 3 * time.Second, time.Minute}[s.rng.IntN(4)]
		pause, breaks = long+time.Duration(s.rng.IntN(100))*time.Millisecond, s.rng.IntN(3) == 0
	}
	clock := time.NewTimer(pause)
	defer clock.Stop()
	select {
	case <-clock.C:
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	}
	switch {
	case breaks:
		return 0, io.ErrUnexpectedEOF
	case len(s.rest) == 0:
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+s.rng.IntN(60_000))], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *modelSource) Close() error { return nil }

// Candidates implements sibling.Locator: both siblings may have everything.
func (m *model) Candidates(dst []sibling.Candidate, _ string) []sibling.Candidate {
	return append(dst, sibling.Candidate{Peer: "b", Service: "b:1"}, sibling.Candidate{Peer: "c", Service: "c:1"})
}

func (*model) Distrust(string) {}

// open returns a cache in memory between the model's sources.
func (m *model) open() *Cache {
	siblings, err := sibling.New(sibling.Config{Name: "a", Locator: m, HTTP: m})
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := New(Config{Name: "a", Transport: m, Siblings: siblings, Tuning: Tuning{BetweenBytesTimeout: 20 * time.Second},
		Recode:      func(*http.Request, http.Header) func(*http.Response) bool { return nil },
		Invalidates: func(*http.Request, *url.URL, int, http.Header) []string { return nil },
		Open:        memstore.Open(2 << 20),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

// client sends requests, some of them reloads, and sometimes leaves before the answer. Every answer that it gets whole is
// one version, and none that a reload has shown to be out of date.
func (m *model) client(c *Cache, rng *rand.Rand) {
	for range 8 {
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		path := fmt.Sprintf("/%d", rng.IntN(10))
		ctx, cancel := context.WithCancel(m.t.Context())
		if rng.IntN(6) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(2000))*time.Millisecond, cancel)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://origin.test"+path, nil).WithContext(ctx)
		reload := []string{"no-cache", "max-age=0", "", "", "", ""}[rng.IntN(6)]
		if reload != "" {
			r.Header.Set("Cache-Control", reload)
		}
		least, resumed := m.shownSo(path), c.BodiesResumed.Load()
		res := c.Serve(w, r)
		cancel()
		if res.Broken || res.Outcome == ClientGone || w.Code != 200 {
			continue
		}
		version, err := strconv.ParseInt(w.Header().Get("Version"), 10, 64)
		if want := modelBody(path, version); err != nil || !bytes.Equal(w.Body.Bytes(), want) {
			m.t.Errorf("seed %d: %s: %d bytes that are not the %d of version %d, %v",
				m.seed, path, w.Body.Len(), len(want), version, err)
		}
		if version < least {
			m.t.Errorf("seed %d: %s: version %d after a reload has shown %d (%q, %s)", m.seed, path, version, least, reload, w.Header().Get("Cache-Status"))
		}
		if reload != "" && res.Outcome == OriginFetch && resumed == c.BodiesResumed.Load() { // otherwise the rest may be private
			m.noteShown(path, version)
		}
	}
}

// TestStates: with clients, siblings and an origin that do everything at random, a fetch and its body make every
// transition that is drawn, and no other; and no answer mixes two versions.
func TestStates(t *testing.T) {
	var mu sync.Mutex
	fetches := map[[2]fetchState]int{}
	var resumed, overtaken uint64
	seeds := uint64(100)
	if testing.Short() { // with the race detector
		seeds = 25
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			m := &model{t: t, seed: seed, shown: make(map[string]int64)}
			c := m.open()
			c.fetchBecame = func(from, to fetchState) {
				mu.Lock()
				defer mu.Unlock()
				if fetches[[2]fetchState{from, to}]++; !slices.Contains(fetchLeads[from], to) {
					t.Errorf("seed %d: a fetch in state %d got into state %d", seed, from, to)
				}
			}
			var clients sync.WaitGroup
			for i := range uint64(6) {
				clients.Go(func() { m.client(c, rand.New(rand.NewPCG(seed, 1<<32+i))) })
			}
			clients.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1<<33))
				for range 5 {
					time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
					if m.change(); rng.IntN(2) == 0 {
						c.Purge(below("http://origin.test/"))
					}
				}
			})
			clients.Wait()
			resumed, overtaken = resumed+c.BodiesResumed.Load(), overtaken+c.BodiesTakenOver.Load()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second) // the model's sources do not end when they are no longer wanted
		})
	}
	t.Logf("fetches %v, resumed %d, overtaken %d", fetches, resumed, overtaken)
	if testing.Short() {
		return
	}
	for from, leads := range fetchLeads {
		for _, to := range leads {
			if fetches[[2]fetchState{fetchState(from), to}] == 0 {
				t.Errorf("no fetch got from state %d into state %d", from, to)
			}
		}
	}
	if resumed < 100 || overtaken < 50 {
		t.Errorf("%d bodies went on where their source had broken off, %d where it was slow", resumed, overtaken)
	}
}
