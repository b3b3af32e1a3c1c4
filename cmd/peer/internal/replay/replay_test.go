package replay

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
	"github.com/summarycache/summarycache/sim/workload"
)

// fakePeer answers like a peer, except for the targets in spoil.
func fakePeer(t *testing.T, sizes map[string]int64, spoil map[string]http.HandlerFunc) string {
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
	return server.Listener.Addr().String()
}

func read(t *testing.T, text string) *workload.Trace {
	t.Helper()
	tr, err := workload.Read("test", strings.NewReader(text), workload.Options{Targets: true})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestChecksEveryAnswer(t *testing.T) {
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
	var last Counts
	o := Options{Trace: tr, Peers: []string{peer}, Workers: 1, Progress: func(c Counts) { last = c }}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total.Failed != 5 || r.Total.Local != 2 || last.Requests != 7 || last.Failed != 5 || !strings.Contains(r.FirstError, "request 2: GET /teapot: 418") {
		t.Errorf("%+v, progress %d and %d, first %s, want 5 of 7 and the teapot", r.Total, last.Requests, last.Failed, r.FirstError)
	}
}

func TestKeepsPaceAndDeal(t *testing.T) {
	tr := workload.Synthetic(workload.Model{Requests: 100, Objects: 5, Seed: 1})
	peers := []string{fakePeer(t, tr.Sizes, nil), fakePeer(t, tr.Sizes, nil), fakePeer(t, tr.Sizes, nil)}
	began := time.Now()
	r, err := Run(t.Context(), Options{Trace: tr, Peers: peers, Workers: 4, Rate: 400, Seed: 9})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 99*time.Second/400 {
		t.Errorf("100 requests at 400 a second took %v", took)
	}
	if r.Total.Failed != 0 || r.Total.Requests != 100 {
		t.Errorf("%+v, the first: %s", r.Total, r.FirstError)
	}
	var want [3]int64
	for _, p := range tr.Assign(3, 9) {
		want[p]++
	}
	for i, p := range r.Peers {
		if p.Requests != want[i] || p.Requests == 0 {
			t.Errorf("peer %d got %d requests, want %d", i, p.Requests, want[i])
		}
	}
}

func TestStops(t *testing.T) {
	tr := workload.Synthetic(workload.Model{Requests: 1000, Objects: 5, Seed: 1})
	ctx, cancel := context.WithCancel(t.Context())
	peer := fakePeer(t, tr.Sizes, nil)
	time.AfterFunc(50*time.Millisecond, cancel)
	r, err := Run(ctx, Options{Trace: tr, Peers: []string{peer}, Workers: 2, Rate: 1000})
	if err != context.Canceled {
		t.Errorf("Run = %v, want context.Canceled", err)
	}
	if r.Total.Failed != 0 {
		t.Errorf("requests that were called off count as failed: %d, %s", r.Total.Failed, r.FirstError)
	}
}
