package httpcache

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/memnet"
	"github.com/summarycache/summarycache/gossip/peering"
)

// sent returns how many messages the caches have sent each other for their misses.
func (w *members) sent() (toOwners, lookups uint64) {
	for _, c := range w.all {
		_, _, sent := c.coalescer.Counts()
		toOwners += sent
		lookups += c.Stats().Lookups
	}
	return toOwners, lookups
}

// TestWalk: caches that are asked for the same keys one after another, or walk through them at the
// same time, load each key about once, however quick a load is. A miss sends at most one message to
// an owner and one to a sibling.
func TestWalk(t *testing.T) {
	const caches, keys, most = 3, 100, 102
	rounds := 3
	if testing.Short() { // with the race detector
		rounds = 1
	}
	for name, tt := range map[string]struct {
		takes, between time.Duration // of a load; between two keys
		together       bool          // all caches at the same time
	}{
		"one after another, quick loads":     {takes: 50 * time.Microsecond},
		"one after another, slow loads":      {takes: 20 * time.Millisecond},
		"one after another, over minutes":    {takes: 50 * time.Microsecond, between: 500 * time.Millisecond},
		"at the same time, quick loads":      {takes: 50 * time.Microsecond, together: true},
		"at the same time, instant loads":    {together: true},
		"at the same time, slow loads":       {takes: 20 * time.Millisecond, together: true},
		"at the same time, very slow loads":  {takes: 3 * time.Second, together: true},
		"one after another, very slow loads": {takes: 4500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newMembers(t, caches)
				defer w.close()
				w.net.SetConditions(memnet.Conditions{Latency: 100 * time.Microsecond})
				w.takes = tt.takes
				w.loads = 0
				for round := range rounds {
					before, took := w.loads, make([]time.Duration, 0, caches*keys)
					owners, lookups := w.sent()
					var mu sync.Mutex
					get := func(i, k int) {
						start := time.Now()
						w.get(i, fmt.Sprint("k", round, "/", k))
						mu.Lock()
						took = append(took, time.Since(start))
						mu.Unlock()
					}
					if tt.together {
						var all sync.WaitGroup
						for i := range w.all {
							all.Go(func() {
								for k := range keys {
									get(i, k)
									time.Sleep(tt.between)
								}
							})
						}
						all.Wait()
					} else {
						for k := range keys {
							for i := range w.all {
								get(i, k)
							}
							time.Sleep(tt.between)
						}
					}
					slices.Sort(took)
					nowOwners, nowLookups := w.sent()
					owners, lookups = nowOwners-owners, nowLookups-lookups
					loads := w.loads - before
					t.Logf("%s: %d loads of %d keys at %d caches; %d messages to owners, %d to siblings; p50 %v, p99 %v", name, loads, keys, caches,
						owners, lookups, took[len(took)/2], took[len(took)*99/100])
					if loads > most {
						t.Errorf("%d loads of %d keys, want at most %d", loads, keys, most)
					}
					if owners > caches*keys || lookups > caches*keys {
						t.Errorf("%d messages to owners and %d to siblings for %d misses", owners, lookups, caches*keys)
					}
				}
			})
		})
	}
}

// TestWalkAfterDigests: a cache whose objects others have found by its digest, a little later, still
// asks owners when they come so soon that no digest helps.
func TestWalkAfterDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, most = 100, 102
		w := newMembers(t, 3)
		defer w.close()
		w.net.SetConditions(memnet.Conditions{Latency: 100 * time.Microsecond})
		w.takes = 50 * time.Microsecond
		const before = 26 // after many more, it takes a few fetches to learn again
		for k := range before {
			w.get(1, fmt.Sprint("a", k))
		}
		time.Sleep(time.Second)
		for k := range before {
			w.get(0, fmt.Sprint("a", k))
		}
		if w.loads != before {
			t.Errorf("%d loads of %d keys that a digest has", w.loads, before)
		}
		w.loads = 0
		for k := range keys {
			for _, i := range []int{1, 0, 2} {
				w.get(i, fmt.Sprint("b", k))
			}
		}
		if w.loads > most {
			t.Errorf("%d loads of %d keys, want at most %d", w.loads, keys, most)
		}
	})
}

// TestOutgrown: a cache with a hundred times as many objects as planned still has one false
// positive in a thousand, and siblings find its objects.
func TestOutgrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMembers(t, 2)
		defer w.close()
		const held = 10_000
		for i := range held {
			if err := w.all[0].Set(t.Context(), fmt.Sprint("x", i), nil, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		found, claimed := 0, 0
		for i := range held {
			found += len(w.nodes[1].Candidates(nil, valueID(fmt.Sprint("x", i))))
			claimed += len(w.nodes[1].Candidates(nil, valueID(fmt.Sprint("y", i))))
		}
		if found != held || claimed > 40 {
			t.Errorf("%d of %d are found, and %d that are not held", found, held, claimed)
		}
	})
}

// TestLyingMember: a member of a whole cluster whose digest has all ones is hardly asked, and the
// objects of another are found.
func TestLyingMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const misses, shared = 3000, 300
		w := newMembers(t, 2)
		defer w.close()
		host := w.net.Host("10.0.0.99")
		filter, err := digest.NewSet(digest.Geometry{Bits: 4096, Hashes: 1, Profile: digest.HTTP, Seed: w.nodes[0].Seed()}, 1)
		if err != nil {
			t.Fatal(err)
		}
		holdings := gossip.NewHoldings(filter)
		for i := range 60_000 {
			holdings.Add(fmt.Sprint("claim ", i))
		}
		liar, err := gossip.New(gossip.Config{Name: "liar", Bind: "10.0.0.99:7946", Service: "10.0.0.99:80", Holdings: holdings, Join: []string{"10.0.0.1:7946"},
			Secret: []byte("a secret of 16 bytes"), Advanced: gossip.Advanced{Network: host}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer liar.Close()
		l, err := host.Listen("10.0.0.99:80")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == peering.CoalescePath {
				rw.WriteHeader(http.StatusNoContent)
				return
			}
			http.Error(rw, "not here", http.StatusGatewayTimeout)
		})}
		go server.Serve(l)
		defer server.Close()
		if err := liar.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range shared {
			w.get(1, fmt.Sprint("shared ", i))
		}
		time.Sleep(5 * time.Second)
		if n := len(w.nodes[0].Candidates(nil, "nobody's")); n != 1 {
			t.Fatalf("%d peers claim to have what nobody has, want 1", n)
		}
		for i := range misses {
			w.get(0, fmt.Sprint("mine ", i))
			if i < shared {
				w.get(0, fmt.Sprint("shared ", i))
			}
			time.Sleep(20 * time.Millisecond)
		}
		r, s := w.all[0].Health.Of("liar"), w.all[0].Stats()
		t.Logf("%d false hits in %d misses; %d of %d shared objects from the sibling", r.FalseHits, misses, s.Siblings, shared)
		if r.FalseHits > 100 || r.FalseHits == 0 || !r.Quarantined || s.Siblings != shared {
			t.Errorf("%+v; %d of %d shared objects from the sibling", r, s.Siblings, shared)
		}
	})
}
