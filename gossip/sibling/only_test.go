package sibling

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// If a sibling is asked although no digest names it, and does not have the object, that is no false
// hit.
// If the candidates do not have the object, the sibling that is fetching it is asked before the
// origin, and nobody is asked a second time which that is.
func TestInFlightAfterFalseHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		w.sibling(lacks)
		w.sibling(lacks)
		w.serve("10.0.0.9:80", holds("x"))
		u, err := url.Parse(originURL + "/a")
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		q := LookupRequest{URL: u, Header: http.Header{"Cache-Control": {"only-if-cached"}},
			Identities: []string{"x"},
			Origin: func(ctx context.Context, _ http.Header) (*http.Response, error) {
				return w.origins.RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx))
			},
			InFlight: func(context.Context, time.Duration) (Peer, bool) {
				asked++
				return Peer{Name: "fetcher", Addr: "10.0.0.9:80"}, true
			}}
		in := w.client.Lookup(q)
		for _, want := range []string{"fetcher", "", ""} {
			a, err := in.Next(t.Context(), nil)
			if err != nil || a.Peer != want || asked != 1 || in.FalseHits != 2 {
				t.Fatalf("Next = %v, %v; want an answer of %q; asked %d times, %d false hits", a, err, want, asked, in.FalseHits)
			}
			a.Body.Close()
		}
	})
}

// A sibling that does not answer is not asked again because it is said to fetch the object.
func TestInFlightAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		w.sibling(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		u, err := url.Parse(originURL + "/a")
		if err != nil {
			t.Fatal(err)
		}
		in := w.client.Lookup(LookupRequest{URL: u, Header: http.Header{"Cache-Control": {"only-if-cached"}}, Identities: []string{"x"},
			Origin: func(ctx context.Context, _ http.Header) (*http.Response, error) {
				return w.origins.RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx))
			},
			InFlight: func(context.Context, time.Duration) (Peer, bool) {
				return Peer{Name: w.known[0].Peer, Addr: w.known[0].Service}, true
			}})
		for w.client.takeHedge() { // until none is left, so that the origin is asked last
		}
		begun := time.Now()
		a, err := in.Next(t.Context(), nil)
		if err != nil || a.Peer != "" || time.Since(begun) > defaultTimeout+time.Second/10 {
			t.Fatalf("Next = %v, %v after %v, want the origin's answer after one wait", a, err, time.Since(begun))
		}
		a.Body.Close()
	})
}

func TestOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		w.sibling(holds("it"))
		w.sibling(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGatewayTimeout) })
		u, err := url.Parse(originURL + "/a")
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []Stats{{Asked: 1, Hits: 1}, {Asked: 1, Hits: 1}} {
			in := w.client.Lookup(LookupRequest{URL: u, Header: http.Header{"Cache-Control": {"only-if-cached"}}, Accept: func(*Answer) bool { return true }})
			in.Only(Peer{Name: w.known[i].Peer, Addr: w.known[i].Service})
			a, err := in.Next(t.Context(), nil)
			if err != nil || (a == nil) != (i == 1) {
				t.Fatalf("Next = %v, %v", a, err)
			}
			if a != nil {
				a.Body.Close()
			}
			got := w.client.Stats()
			got.Bytes = 0
			if got != want {
				t.Errorf("after question %d: %+v, want %+v", i, got, want)
			}
		}
	})
}

// Only hits and failures of a sibling that no digest names are recorded: neither that it does not
// have the object, nor that the origin overtook it while it was fetching.
func TestUnlistedPromiseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.client.hedge.share = 1
		defer w.close()
		w.sibling(lacks)
		w.sibling(func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		w.client.origins.record(outcome{peer: "10.9.9.9:80", kind: other, result: answered, took: 100 * time.Millisecond})
		u, err := url.Parse(originURL + "/a")
		if err != nil {
			t.Fatal(err)
		}
		q := LookupRequest{URL: u, Header: http.Header{"Cache-Control": {"only-if-cached"}}}
		in := w.client.Lookup(q)
		in.Only(Peer{Name: w.known[0].Peer, Addr: w.known[0].Service})
		if a, err := in.Next(t.Context(), nil); a != nil || err != nil {
			t.Fatalf("Next = %v, %v", a, err)
		}
		q.Origin = func(ctx context.Context, _ http.Header) (*http.Response, error) {
			return w.origins.RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx))
		}
		q.InFlight = func(context.Context, time.Duration) (Peer, bool) {
			return Peer{Name: w.known[1].Peer, Addr: w.known[1].Service}, true
		}
		in = w.client.Lookup(q)
		a, err := in.Next(t.Context(), nil)
		if err != nil || a.Peer != "" || w.client.Stats().HedgesWon != 1 {
			t.Fatalf("Next = %v, %v; %+v", a, err, w.client.Stats())
		}
		a.Body.Close()
		if got := w.recorded(); got != "" {
			t.Errorf("recorded %q", got)
		}
	})
}
