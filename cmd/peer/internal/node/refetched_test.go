package node

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// falseHits returns a peer's requests to siblings that brought nothing, and how many the records of
// its siblings have.
func (v *virtual) falseHits(i int) (all, recorded int64) {
	s := v.nodes[i].Status()
	for _, m := range s.Members {
		recorded += m.Record.FalseHits
	}
	return int64(s.Traffic.FalseHits), recorded
}

// TestRefetchedAtOnce: what one peer fetches at once after an invalidation is a hit for another, as
// soon as that has the digest and at any later time, and no false hit. So is what an origin sends
// from a cache of its own, with an Age.
func TestRefetchedAtOnce(t *testing.T) {
	each := 40
	if testing.Short() { // with the race detector
		each = 8
	}
	ways := map[string]func(v *virtual, path string) error{
		"a write": func(v *virtual, path string) error { v.send("POST", 0, path); return nil },
	}
	for name, order := range map[string]func(path string) admin.PurgeRequest{
		"a purge":           func(path string) admin.PurgeRequest { return admin.PurgeRequest{URL: path} },
		"a purge by prefix": func(path string) admin.PurgeRequest { return admin.PurgeRequest{URL: path, Prefix: true} },
		"a purge by pattern": func(path string) admin.PurgeRequest {
			return admin.PurgeRequest{URL: "/*" + path[2:], Pattern: true}
		},
		"a soft purge by pattern": func(path string) admin.PurgeRequest {
			return admin.PurgeRequest{URL: path[:len(path)-1] + "*", Pattern: true, Soft: true}
		},
		"a purge by tag":      func(path string) admin.PurgeRequest { return admin.PurgeRequest{Tags: []string{path}} },
		"a soft purge by tag": func(path string) admin.PurgeRequest { return admin.PurgeRequest{Tags: []string{path}, Soft: true} },
	} {
		ways[name] = func(v *virtual, path string) error {
			o := order(path)
			o.Everywhere = true
			r, err := v.nodes[0].Purge(v.t.Context(), o)
			if err == nil && r.Failed() != 0 {
				err = fmt.Errorf("%+v", r)
			}
			return err
		}
	}
	for name, invalidate := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVirtual(t, 2, nil)
				defer v.stop()
				var version, asked atomic.Int64
				v.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						return
					}
					asked.Add(1)
					w.Header().Set("Cache-Control", "max-age=86400")
					w.Header().Set("Xkey", r.URL.Path)
					if strings.HasSuffix(r.URL.Path, "/aged") {
						w.Header().Set("Age", "3000")
					}
					fmt.Fprint(w, version.Load())
				})
				pause(3 * time.Second)
				random := rand.New(rand.NewPCG(1, 1))
				hits := 0
				for k := range each {
					path := fmt.Sprintf("/%d/", k) + []string{"plain", "aged"}[k%2]
					for i := range v.nodes {
						v.send("GET", i, path)
					}
					pause(2 * time.Second)
					now := fmt.Sprint(version.Add(1))
					if err := invalidate(v, path); err != nil {
						t.Error(err)
					}
					if k%3 == 1 {
						pause(time.Duration(random.IntN(3000)) * time.Millisecond)
					}
					if got, status := v.send("GET", 0, path); got != now || strings.Contains(status, "sibling") {
						t.Fatalf("p0 has version %s (%s), want %s of the origin", got, status, now)
					}
					before := asked.Load()
					pause(time.Second)
					for waited := 0; v.knowing() < 2; waited++ {
						if waited == 100 {
							t.Fatal("a digest did not arrive within 11 s")
						}
						pause(100 * time.Millisecond)
					}
					switch {
					case k == each-1 && name == "a purge by tag":
						pause(70 * time.Minute) // the cluster has forgotten the invalidation
					case k%4 == 2:
						pause(time.Duration(random.IntN(10_000)) * time.Millisecond)
					}
					if got, status := v.send("GET", 1, path); got == now && strings.Contains(status, "detail=sibling") && asked.Load() == before {
						hits++
					} else if got != now {
						t.Errorf("p1 has version %s (%s), want %s", got, status, now)
					}
				}
				all, recorded := v.falseHits(1)
				t.Logf("after %s: hits at the sibling %d of %d; %d false hits, %d of them recorded", name, hits, each, all, recorded)
				if hits != each || all != 0 || recorded != 0 {
					t.Errorf("%d hits of %d; %d false hits, %d of them recorded, want none", hits, each, all, recorded)
				}
			})
		})
	}
}

// TestTagPurgeUnderLoad: after a purge of a thousand hot objects by a tag, each is fetched from the
// origin about once, although clients ask for it at three peers.
func TestTagPurgeUnderLoad(t *testing.T) {
	for _, think := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		t.Run(think.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { tagPurgeUnderLoad(t, think) }) })
	}
}

func tagPurgeUnderLoad(t *testing.T, think time.Duration) {
	const peers = 3
	hot := 1000
	if testing.Short() { // with the race detector
		hot = 200
	}
	most := int64(hot + 10)
	v := newVirtual(t, peers, nil)
	defer v.stop()
	o := new(tagged)
	v.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pause(think)
		o.ServeHTTP(w, r)
	})
	v.net.SetConditions(memnet.Conditions{Latency: 100 * time.Microsecond})
	pause(3 * time.Second)
	// Each object is asked for at each peer, in an order that differs from time to time, 200 times a
	// second in all.
	random := rand.New(rand.NewPCG(1, 2))
	round := func() {
		var all sync.WaitGroup
		for _, k := range random.Perm(hot * peers) {
			pause(5 * time.Millisecond)
			all.Go(func() {
				if got, status := v.send("GET", k%peers, fmt.Sprint("/hot/", k/peers)); got != fmt.Sprint(o.version.Load()) {
					t.Errorf("object %d: version %s (%s), want %d", k/peers, got, status, o.version.Load())
				}
			})
		}
		all.Wait()
	}
	round()
	for range 2 {
		pause(2 * time.Second)
		o.version.Add(1)
		before := o.asked.Load()
		if r, err := v.nodes[1].Purge(t.Context(), admin.PurgeRequest{Tags: []string{"hot"}, Everywhere: true}); err != nil || r.Failed() != 0 {
			t.Errorf("Purge = %+v, %v", r, err)
		}
		round()
		fetched := o.asked.Load() - before
		t.Logf("a purge of %d objects, each asked for at %d peers, of an origin that takes %v: %d origin fetches", hot, peers, think, fetched)
		if fetched > most {
			t.Errorf("%d origin fetches of %d objects, want at most %d", fetched, hot, most)
		}
	}
}
