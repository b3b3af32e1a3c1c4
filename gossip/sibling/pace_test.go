package sibling

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An origin that is far faster than the siblings is asked first, and siblings are asked if it
// fails. After some time they are tried again.
func TestFastOriginFirst(t *testing.T) {
	for _, tt := range []struct {
		sibling, origin time.Duration
		first           bool // the origin is
	}{
		{150 * time.Millisecond, 3 * time.Millisecond, true},
		{150 * time.Millisecond, 100 * time.Millisecond, false},
		{40 * time.Millisecond, time.Millisecond, false}, // siblings spare the origin
		{2 * time.Millisecond, 100 * time.Microsecond, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			defer w.close()
			w.sibling(func(rw http.ResponseWriter, r *http.Request) {
				time.Sleep(tt.sibling)
				holds("theirs")(rw, r)
			})
			fail, asked := false, 0
			ask := func() (peer string, err error) {
				target, _ := url.Parse("http://x/y")
				a, err := w.client.Lookup(LookupRequest{
					URL: target, Identities: []string{"i"}, Header: http.Header{"Cache-Control": {"only-if-cached"}},
					Origin: func(context.Context, http.Header) (*http.Response, error) {
						asked++
						time.Sleep(tt.origin)
						if fail {
							return nil, errors.New("down")
						}
						return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ours"))}, nil
					},
				}).Next(t.Context(), nil)
				if err != nil {
					return "", err
				}
				io.Copy(io.Discard, a.Body)
				a.Body.Close()
				return a.Peer, nil
			}
			w.client.origins.record(outcome{peer: "x", kind: other, result: answered, took: tt.origin}) // as of other objects
			ask()
			if peer, err := ask(); (peer == "") != tt.first || err != nil {
				t.Errorf("sibling %v, origin %v: answered by %q, %v", tt.sibling, tt.origin, peer, err)
			}
			if !tt.first {
				return
			}
			fail = true
			if peer, err := ask(); peer != "p1" || err != nil {
				t.Errorf("with the origin down: %q, %v", peer, err)
			}
			fail = false
			time.Sleep(tripHalfLife + time.Second)
			if peer, err := ask(); peer != "p1" || err != nil {
				t.Errorf("after %v: %q, %v", tripHalfLife, peer, err)
			}
		})
	}
}

// A request to a member is canceled at once when the member is gone.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Timeout: time.Minute})
		w.client.hedge = budget{}
		defer w.close()
		w.sibling(func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		time.AfterFunc(time.Second, func() { w.client.Gone("p1") })
		start := time.Now()
		if _, body, err := w.get(t.Context(), "/x"); body != "origin" || err != nil || time.Since(start) > 1100*time.Millisecond {
			t.Errorf("%q, %v after %v", body, err, time.Since(start))
		}
		if n := len(w.client.underway); n != 0 {
			t.Errorf("%d questions under way", n)
		}
	})
}

// A sibling that passes on a body as slowly as it receives it is no slow sibling: it is asked before a fast
// origin again. One that is slow itself is not.
func TestPaceOfArrivingBody(t *testing.T) {
	for _, detail := range []string{"arriving", ""} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			defer w.close()
			w.sibling(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Cache-Status", strings.TrimSuffix("p1; hit; detail="+detail, "; detail="))
				for range 10 {
					rw.Write(make([]byte, 4<<10))
					rw.(http.Flusher).Flush()
					time.Sleep(100 * time.Millisecond)
				}
			})
			w.client.origins.record(outcome{peer: "x", kind: other, result: answered, took: time.Millisecond})
			w.client.origins.size.add(40 << 10)
			target, _ := url.Parse("http://x/y")
			r := LookupRequest{URL: target, Identities: []string{"i"}, Header: http.Header{"Cache-Control": {"only-if-cached"}},
				Origin: func(context.Context, http.Header) (*http.Response, error) { return nil, errors.New("down") }}
			a, err := w.client.Lookup(r).Next(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, a.Body)
			a.Body.Close()
			if first, _ := w.client.plan(&r); (len(first) == 1) != (detail == "arriving") {
				t.Errorf("detail=%q: %d siblings are asked before the origin", detail, len(first))
			}
		})
	}
}

// How late this process runs does not make a sibling slow, neither while it runs late nor afterwards.
func TestLatenessIsNotSlowness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 100 * time.Millisecond
		w := newWorld(t, Config{Late: func() time.Duration { return late }})
		defer w.close()
		wait := 150 * time.Millisecond
		w.sibling(func(rw http.ResponseWriter, r *http.Request) {
			time.Sleep(wait)
			holds("theirs")(rw, r)
		})
		target, _ := url.Parse("http://x/y")
		r := LookupRequest{URL: target, Identities: []string{"i"}, Header: http.Header{"Cache-Control": {"only-if-cached"}}}
		ask := func() {
			if a, err := w.client.Lookup(r).Next(t.Context(), nil); err == nil {
				io.Copy(io.Discard, a.Body)
				a.Body.Close()
			}
		}
		w.client.origins.record(outcome{peer: "x", kind: other, result: answered, took: time.Millisecond})
		r.Origin = func(context.Context, http.Header) (*http.Response, error) { return nil, errors.New("down") }
		ask()
		trip := func() time.Duration {
			rec, _ := w.client.cfg.Health.look(w.known[0].Peer)
			return time.Duration(rec.trip.value * float64(time.Second)).Round(time.Millisecond)
		}
		if got := trip(); got != wait-late {
			t.Errorf("a round trip of %v of a process that is %v late counts as %v", wait, late, got)
		}
		w.client.cfg.Health.record(outcome{peer: w.known[0].Peer, kind: other, result: answered, took: 3 * time.Second})
		if first, _ := w.client.plan(&r); len(first) != 1 {
			t.Error("a process that runs late asks the origin first")
		}
		was := trip()
		late, wait = 200*time.Millisecond, time.Minute
		if ask(); trip() != was {
			t.Errorf("what a process that runs late waited for in vain counts: %v, then %v", was, trip())
		}
		late = 0
		if first, _ := w.client.plan(&r); len(first) != 0 {
			t.Error("later, a slow sibling is asked first")
		}
	})
}
