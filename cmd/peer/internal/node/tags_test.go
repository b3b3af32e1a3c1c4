package node

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/sim/cputime"
)

// A tagged origin answers with a version, and with tags for everything, the path and the directory.
type tagged struct {
	version, asked atomic.Int64
	down           atomic.Bool
}

func (o *tagged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.asked.Add(1)
	if o.down.Load() {
		panic(http.ErrAbortHandler)
	}
	dir, _, _ := strings.Cut(r.URL.Path[1:], "/")
	w.Header().Set("Cache-Control", "max-age=3600, stale-if-error=600")
	w.Header().Set("Surrogate-Key", "all "+dir)
	w.Header().Set("Xkey", r.URL.Path)
	fmt.Fprint(w, o.version.Load())
}

var objects = flag.Int("tagged", 1000, "how many objects TestPurgeTag has at each peer; the target is of 10000")

// TestPurgeTag: one message to each of three peers removes all objects with a tag within a second,
// including those stored by an earlier process, and those of a peer that is away.
func TestPurgeTag(t *testing.T) {
	each := *objects
	if testing.Short() { // with the race detector
		each = 200
	}
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 0, nil)
		defer v.stop()
		o := new(tagged)
		v.server.Handler = o
		dir := t.TempDir()
		at := func(i int) string { return filepath.Join(dir, fmt.Sprint(i)) }
		for i := range 3 {
			v.start(i, at(i))
		}
		pause(3 * time.Second)
		fill := func() {
			for _, n := range v.nodes {
				for k := range each {
					w := httptest.NewRecorder()
					n.proxy.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprintf("/%d/%d", k%2, k), nil))
					if w.Code != http.StatusOK {
						t.Fatal(w.Code, w.Header())
					}
				}
			}
			synctest.Wait()
			pause(time.Second)
		}
		held := func(i int) int { return int(v.nodes[i].proxy.Store().Stats().Objects) }
		fill()
		if err := v.nodes[2].Close(); err != nil {
			t.Fatal(err)
		}
		v.nodes = v.nodes[:2]
		v.start(2, at(2)) // its index has the objects found on its disk
		pause(10 * time.Second)
		for i := range v.nodes {
			if held(i) != each {
				t.Fatalf("p%d holds %d objects", i, held(i))
			}
		}
		purge := func(i int, order admin.PurgeRequest, removed, failed int) {
			t.Helper()
			pushes, began, used := v.nodes[i].gossip.Stats().Invalidations.PushesOut, time.Now(), cputime.Used()
			r, err := v.nodes[i].Purge(t.Context(), order)
			if err != nil || r.Failed() != failed || *r.Peers[0].Removed != removed {
				t.Errorf("Purge(%+v) = %+v, %v", order, r, err)
			}
			t.Logf("Purge(%+v): %v, %d messages, %v of CPU time for all peers", order, time.Since(began), v.nodes[i].gossip.Stats().Invalidations.PushesOut-pushes, cputime.Used()-used)
			if time.Since(began) > time.Second {
				t.Errorf("it took %v", time.Since(began))
			}
		}
		purge(0, admin.PurgeRequest{Tags: []string{"none"}, Everywhere: true}, 0, 0)
		purge(0, admin.PurgeRequest{Tags: []string{"/1/7"}, Everywhere: true}, 1, 0)
		purge(0, admin.PurgeRequest{Tags: []string{"0"}, Everywhere: true, Soft: true}, each/2, 0)
		for i := range v.nodes {
			if s := v.nodes[i].proxy.Store().Stats(); int(s.Objects) != each-1 || s.Listed != each/2-1 {
				t.Errorf("p%d holds %d objects, %d of them fresh", i, s.Objects, s.Listed)
			}
		}
		purge(1, admin.PurgeRequest{Tags: []string{"all"}, Everywhere: true}, each-1, 0)
		for i := range v.nodes {
			if held(i) != 0 {
				t.Errorf("p%d holds %d objects", i, held(i))
			}
		}
		// A peer that is away gets the purge when it is back, before it serves.
		for i := range v.nodes {
			v.send("GET", i, "/a/b")
		}
		synctest.Wait()
		if err := v.nodes[2].Close(); err != nil {
			t.Fatal(err)
		}
		v.nodes = v.nodes[:2]
		pause(30 * time.Second)
		o.version.Store(1)
		purge(0, admin.PurgeRequest{Tags: []string{"a"}, Everywhere: true}, 1, 1)
		v.start(2, at(2))
		if got, status := v.send("GET", 2, "/a/b"); got != "1" {
			t.Errorf("a peer that was away has version %s (%s)", got, status)
		}
	})
}

// TestSoftPurge: after a soft purge an object is validated before its next use, and served stale
// while the origin is down. No peer gets it as fresh from another.
func TestSoftPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 3, nil)
		defer v.stop()
		o := new(tagged)
		v.server.Handler = o
		pause(3 * time.Second)
		for i := range v.nodes {
			v.send("GET", i, "/a/b")
			pause(3 * time.Second)
		}
		for _, order := range []admin.PurgeRequest{{Tags: []string{"a"}}, {URL: "/a/b"}, {URL: "/a", Prefix: true}} {
			order.Soft, order.Everywhere = true, true
			o.version.Add(1)
			if r, err := v.nodes[1].Purge(t.Context(), order); err != nil || r.Failed() != 0 || *r.Peers[0].Removed != 1 {
				t.Errorf("Purge(%+v) = %+v, %v", order, r, err)
			}
			o.down.Store(true)
			if got, status := v.send("GET", 0, "/a/b"); got != fmt.Sprint(o.version.Load()-1) || !strings.Contains(status, "stale-if-error") {
				t.Errorf("%+v, with the origin down: version %s (%s)", order, got, status)
			}
			o.down.Store(false)
			for i := range v.nodes {
				if got, status := v.send("GET", i, "/a/b"); got != fmt.Sprint(o.version.Load()) {
					t.Errorf("%+v: p%d has version %s (%s)", order, i, got, status)
				}
				pause(time.Second)
			}
		}
		for _, order := range []admin.PurgeRequest{{}, {URL: "/a/b", Tags: []string{"a"}}, {Tags: []string{"a b"}}, {Tags: []string{""}},
			{Tags: []string{"a"}, Prefix: true}, {Tags: make([]string, 1000)}} {
			if r, err := v.nodes[1].Purge(t.Context(), order); err == nil {
				t.Errorf("Purge(%+v) = %+v", order, r)
			}
		}
	})
}

// TestPurgeWhileFetching: a response that was requested before a purge and arrives after it is
// neither stored nor sent to a sibling, whether its tags are known meanwhile or not.
func TestPurgeWhileFetching(t *testing.T) {
	for name, late := range map[string]struct{ header, body time.Duration }{
		"before the header": {2 * time.Second, 0},
		"within the body":   {0, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVirtual(t, 2, nil)
				defer v.stop()
				var version atomic.Int64
				v.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					is := version.Load()
					slow := is == 0
					if slow {
						pause(late.header)
					}
					w.Header().Set("Cache-Control", "max-age=3600")
					w.Header().Set("Cache-Tag", "x,y")
					w.WriteHeader(http.StatusOK)
					w.(http.Flusher).Flush()
					if slow {
						pause(late.body)
					}
					fmt.Fprint(w, is)
				})
				pause(3 * time.Second)
				done := make(chan struct{})
				go func() {
					defer close(done)
					r, err := v.client.Get("http://10.0.0.1:80/x")
					if err == nil {
						io.Copy(io.Discard, r.Body)
						r.Body.Close()
					}
				}()
				pause(time.Second)
				version.Add(1)
				if r, err := v.nodes[1].Purge(t.Context(), admin.PurgeRequest{Tags: []string{"y"}, Everywhere: true}); err != nil || r.Failed() != 0 {
					t.Errorf("Purge = %+v, %v", r, err)
				}
				for range 2 {
					for i := range v.nodes {
						if got, status := v.send("GET", i, "/x"); got != "1" {
							t.Errorf("p%d has version %s (%s)", i, got, status)
						}
					}
					<-done
					pause(time.Second)
				}
			})
		})
	}
}
