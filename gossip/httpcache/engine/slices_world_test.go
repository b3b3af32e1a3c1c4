package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A sliceWorld is an origin with one object, and caches that are siblings of each other.
type sliceWorld struct {
	t      *testing.T
	caches map[string]*Cache

	mu         sync.Mutex
	body       []byte
	tag        string
	ignores    bool // the origin knows no Range
	chunked    bool // the origin does not say how long a body is
	down       bool
	refused    int      // the status of its answers to ranges; 0 = they are answered
	ranges     []string // of the requests to the origin; "" = none
	sent       int64    // bytes of bodies that it sent
	open       int      // its answers that are not closed
	advertised map[string]map[string]int
	dead       string              // this sibling breaks off each answer after some bytes
	rewrite    func(h http.Header) // of the origin's answers; nil = none
	bodies     map[string][]byte   // by Etag; nil = all have body
	answered   func(r *http.Request, resp *http.Response)
	room       atomic.Int64 // objects that may be begun in stores from now on
}

func newSliceWorld(t *testing.T, size int, names ...string) *sliceWorld {
	w := &sliceWorld{t: t, caches: map[string]*Cache{}, tag: `"1"`, advertised: map[string]map[string]int{}}
	w.room.Store(1 << 40)
	w.body = make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(w.body)
	for _, name := range names {
		w.advertised[name] = map[string]int{}
		siblings, err := sibling.New(sibling.Config{Name: name, Locator: &sliceLocator{w, name}, HTTP: siblingOf{w}})
		if err != nil {
			t.Fatal(err)
		}
		tell := func(by int) func(string) {
			return func(id string) {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.advertised[name][id] += by; w.advertised[name][id] == 0 {
					delete(w.advertised[name], id)
				}
			}
		}
		c, err := New(Config{Name: name, Transport: w, Siblings: siblings, Tuning: Tuning{BetweenBytesTimeout: 20 * time.Second},
			Advertise: tell(1), Withdraw: tell(-1),
			Recode:      func(*http.Request, http.Header) func(*http.Response) bool { return nil },
			Invalidates: func(*http.Request, *url.URL, int, http.Header) []string { return nil },
			Open: func(h bodies.Hooks) (bodies.Store, error) {
				s, err := memstore.Open(256 << 20)(h)
				return fillable{s, w}, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.caches[name] = c
	}
	return w
}

// A fillable store may have no room.
type fillable struct {
	bodies.Store
	w *sliceWorld
}

func (s fillable) Create(key string, size int64) (*bodies.Stream, error) {
	if s.w.room.Add(-1) < 0 {
		return nil, errors.New("no space left on device")
	}
	return s.Store.Create(key, size)
}

func (w *sliceWorld) close() {
	for _, c := range w.caches {
		if err := c.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// RoundTrip is the origin's answer.
func (w *sliceWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ranges = append(w.ranges, r.Header.Get("Range"))
	if w.down {
		return nil, io.ErrUnexpectedEOF
	}
	rec := httptest.NewRecorder()
	h := rec.Header()
	h.Set("Cache-Control", "max-age=60")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if w.tag != "" {
		h.Set("Etag", w.tag)
	}
	if w.rewrite != nil {
		w.rewrite(h)
	}
	q := r.Clone(r.Context())
	if w.refused > 0 && r.Header["Range"] != nil {
		rec.WriteHeader(w.refused)
		resp := rec.Result()
		resp.Request = r
		return resp, nil
	}
	if w.ignores {
		q.Header.Del("Range")
	}
	body := w.body
	if w.bodies != nil {
		body = w.bodies[h.Get("Etag")]
	}
	http.ServeContent(rec, q, "x", time.Time{}, bytes.NewReader(body))
	resp := rec.Result()
	resp.Request = r
	if w.answered != nil {
		w.answered(r, resp)
	}
	resp.Body = &countedBody{Reader: resp.Body, w: w}
	w.open++
	if w.chunked {
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
	if resp.StatusCode == 206 {
		resp.Header.Del("Accept-Ranges") // nginx sends it with status 200 alone
	}
	return resp, nil
}

type countedBody struct {
	io.Reader
	w      *sliceWorld
	closed bool
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.w.mu.Lock()
	b.w.sent += int64(n)
	b.w.mu.Unlock()
	return n, err
}

func (b *countedBody) Close() error {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.w.open--
	}
	return nil
}

type sliceLocator struct {
	w    *sliceWorld
	name string
}

func (l *sliceLocator) Candidates(dst []sibling.Candidate, id string) []sibling.Candidate {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for name, listed := range l.w.advertised {
		if name != l.name && listed[id] > 0 {
			dst = append(dst, sibling.Candidate{Peer: name, Service: name + ":1"})
		}
	}
	return dst
}

func (*sliceLocator) Distrust(string) {}

// siblingOf carries requests from one cache to another.
type siblingOf struct{ w *sliceWorld }

func (s siblingOf) RoundTrip(r *http.Request) (*http.Response, error) {
	target, err := url.Parse(r.URL.Opaque)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(r.URL.Host, ":1")
	q := r.Clone(r.Context())
	q.URL = target
	rec := httptest.NewRecorder()
	s.w.caches[name].Serve(rec, q)
	resp := rec.Result()
	resp.Request = r
	if s.w.dead == name && resp.ContentLength > 1000 {
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(resp.Body, 1000), brokenReader{}))
	}
	return resp, nil
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// get requests the object from a cache; fields are "Name: value".
func (w *sliceWorld) get(name string, fields ...string) (*httptest.ResponseRecorder, Result) {
	return w.do("GET", name, fields...)
}

func (w *sliceWorld) do(method, name string, fields ...string) (*httptest.ResponseRecorder, Result) {
	r := httptest.NewRequest(method, "http://origin.test/x", nil)
	for _, f := range fields {
		k, v, _ := strings.Cut(f, ": ")
		r.Header.Set(k, v)
	}
	rec := httptest.NewRecorder()
	res := w.caches[name].Serve(rec, r)
	return rec, res
}

// asked returns the ranges of the requests to the origin since the last call.
func (w *sliceWorld) asked() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.ranges
	w.ranges = nil
	return asked
}

func (w *sliceWorld) wantAsked(what string, want ...string) {
	w.t.Helper()
	if got := w.asked(); !slices.Equal(got, want) {
		w.t.Errorf("%s: the origin was asked for %q, want %q", what, got, want)
	}
}

func (w *sliceWorld) wantPart(rec *httptest.ResponseRecorder, res Result, first, end int) {
	w.t.Helper()
	status, length := 206, end-first
	if end-first == len(w.body) && rec.Header().Get("Content-Range") == "" {
		status = 200
	}
	want := ""
	if status == 206 {
		want = fmt.Sprintf("bytes %d-%d/%d", first, end-1, len(w.body))
	}
	if got := rec.Header().Get("Accept-Ranges"); got != "bytes" {
		w.t.Errorf("Accept-Ranges: %q", got)
	}
	if rec.Code != status || res.Err != nil || res.Bytes != int64(length) || !bytes.Equal(rec.Body.Bytes(), w.body[first:end]) ||
		rec.Header().Get("Content-Range") != want || rec.Header().Get("Content-Length") != fmt.Sprint(length) {
		w.t.Errorf("%d, %d bytes (%d counted), %v, %v; want %d and %d bytes", rec.Code, rec.Body.Len(), res.Bytes, res.Err, rec.Header(), status, length)
	}
}

const sliceLength = SliceSize
