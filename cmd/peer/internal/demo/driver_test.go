package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/cmd/peer/internal/trace"
)

// fakePeer answers like a peer, and wrongly for the targets that spoil has.
func fakePeer(t *testing.T, sizes map[string]int64, spoil map[string]http.HandlerFunc) *url.URL {
	t.Helper()
	right := &origin.Handler{Sizes: sizes}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Status", "fake; hit")
		if h := spoil[r.URL.RequestURI()]; h != nil {
			h(w, r)
			return
		}
		right.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read("test", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestDriverChecksEveryAnswer(t *testing.T) {
	tr := read(t, "1 a /right?x=1;y 500\n2 a /teapot 5\n3 a /short 700\n4 a //right%20too 3\n5 a /other 70\n6 a /silent 9\n7 a /moved 1\n")
	peer := fakePeer(t, tr.Sizes, map[string]http.HandlerFunc{
		"/teapot": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"/short":  func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 3)) },
		"/other":  func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 70)) },
		"/silent": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Del("Cache-Status")
			http.ServeContent(w, r, "", time.Time{}, origin.NewContent("/silent", 9))
		},
		"/moved": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/right?x=1;y", http.StatusFound) },
	})
	d := newDriver(Options{Trace: tr, Workers: 1}, []*url.URL{peer}, nil)
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	n, first := d.errors()
	if n != 5 || d.done.Load() != 7 || first == nil || !strings.Contains(first.Error(), "request 2: GET /teapot: 418") {
		t.Errorf("%d failures of %d requests, first %v, want 5 of 7 and the teapot", n, d.done.Load(), first)
	}
}

func TestDriverKeepsPaceAndDeal(t *testing.T) {
	tr := trace.Synthetic(trace.Workload{Requests: 100, Objects: 5, Seed: 1})
	var got [3]int
	peers := make([]*url.URL, 3)
	for i := range peers {
		peers[i] = fakePeer(t, tr.Sizes, nil)
	}
	d := newDriver(Options{Trace: tr, Workers: 4, Rate: 400, Seed: 9}, peers, nil)
	began := time.Now()
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 99*time.Second/400 {
		t.Errorf("100 requests at 400 a second took %v", took)
	}
	for _, p := range d.dealt {
		got[p]++
	}
	if n, err := d.errors(); n != 0 || got[0]+got[1]+got[2] != 100 || got[0] == 0 || got[1] == 0 || got[2] == 0 {
		t.Errorf("dealt %v with %d failures: %v", got, n, err)
	}
}

func TestDriverStops(t *testing.T) {
	tr := trace.Synthetic(trace.Workload{Requests: 1000, Objects: 5, Seed: 1})
	ctx, cancel := context.WithCancel(t.Context())
	peer := fakePeer(t, tr.Sizes, nil)
	d := newDriver(Options{Trace: tr, Workers: 2, Rate: 1000}, []*url.URL{peer}, nil)
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := d.run(ctx); err != context.Canceled {
		t.Errorf("run = %v, want context.Canceled", err)
	}
	if n, err := d.errors(); n != 0 {
		t.Errorf("requests that were called off count as failed: %d, %v", n, err)
	}
}
