package node

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/digest"
)

// TestPurgeTooManyMembers: a purge names the peers that are no members because there are too many, and fails there.
func TestPurgeTooManyMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 0, nil)
		defer v.stop()
		v.tune = func(c *config.Config) { c.MaxMembers = 3 }
		dir := t.TempDir()
		for i := range 4 {
			v.start(i, dir+"/"+string(rune('a'+i)))
			pause(5 * time.Second)
		}
		pause(5 * time.Minute)
		if text := fmt.Sprint(v.nodes[3].Health().Degraded); !strings.Contains(text, "--max-members") {
			t.Errorf("a peer too many says %s", text)
		}
		r, err := v.nodes[0].Purge(t.Context(), admin.PurgeRequest{URL: "/", Everywhere: true, Prefix: true})
		if err != nil || len(r.Peers) != 4 || r.Failed() != 1 {
			t.Fatalf("Purge = %+v, %v", r, err)
		}
		for _, p := range r.Peers {
			if refused := strings.Contains(p.Error, "--max-members"); refused != (p.Peer == "p3") {
				t.Errorf("%s: %q", p.Peer, p.Error)
			}
		}
	})
}

// A purge everywhere removes an object from all live peers, and its report names the peers that
// were not reached.
func TestPurgeEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 3, map[string]int64{"/a/1": 10, "/a/2": 10, "/b": 10})
		defer v.stop()
		pause(3 * time.Second)
		for i := range v.nodes {
			for _, target := range []string{"/a/1", "/a/2", "/b"} {
				if err := v.get(i, target); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait() // a body is stored after its client has received it
		total := func(o admin.PurgeRequest) (removed, failed int) {
			t.Helper()
			r, err := v.nodes[0].Purge(t.Context(), o)
			if err != nil || len(r.Peers) != 3 || r.Peers[0].Peer != "p0" {
				t.Fatalf("Purge = %+v, %v", r, err)
			}
			for _, p := range r.Peers {
				if p.Removed != nil {
					removed += *p.Removed
				}
			}
			return removed, r.Failed()
		}
		held := func(want int) {
			t.Helper()
			for i := range v.nodes {
				if got := v.nodes[i].proxy.Store().Stats().Objects; int(got) != want {
					t.Errorf("p%d holds %d objects, want %d", i, got, want)
				}
			}
		}
		if removed, failed := total(admin.PurgeRequest{URL: "/b", Everywhere: true}); removed != 1 || failed != 0 {
			t.Errorf("by URL: %d removed here, %d failed", removed, failed)
		}
		held(2)
		v.nodes[2].Close()
		pause(30 * time.Second)
		if removed, failed := total(admin.PurgeRequest{URL: "/a/", Prefix: true, Everywhere: true}); removed != 2 || failed != 1 {
			t.Errorf("by prefix, with a dead peer: %d removed here, %d failed", removed, failed)
		}
		if r, err := v.nodes[0].Purge(t.Context(), admin.PurgeRequest{URL: "http://elsewhere/", Everywhere: true}); err == nil {
			t.Errorf("Purge of another origin's URL = %+v", r)
		}
	})
}

func TestWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 3, map[string]int64{"/x": 10})
		defer v.stop()
		pause(3 * time.Second)
		if err := v.get(1, "/x"); err != nil {
			t.Fatal(err)
		}
		pause(5 * time.Second)
		e, err := v.nodes[0].Why(admin.WhyRequest{URL: "/x"})
		if err != nil || e.Method != "GET" || e.URL != originURL+"/x" || e.Verdict != "fetch" || !strings.Contains(e.Text, "Asked: p1, then the origin.") {
			t.Errorf("Why = %+v, %v", e, err)
		}
		said, asked := 0, 0
		for _, m := range e.Matches {
			if m.Says {
				said++
			}
			if m.Turn == 1 && m.Peer == "p1" && m.Odds > 0.9 && m.Cost > 0 && m.Says && m.FalsePositiveRate < 0.001 {
				asked++
			}
		}
		if len(e.Matches) != 6 || said != 1 || asked != 1 { // two peers, plain, of any variant and by Accept-Encoding
			t.Errorf("%d matches, %d say yes, %d would be asked: %+v", len(e.Matches), said, asked, e.Matches)
		}
		if e, _ := v.nodes[1].Why(admin.WhyRequest{URL: "/x"}); e.Verdict != "hit" || len(e.Stored) != 1 || e.Text != "A hit: the stored response is fresh." {
			t.Errorf("Why where it is = %+v", e)
		}
		if e, _ := v.nodes[0].Why(admin.WhyRequest{URL: "/nowhere"}); !strings.HasSuffix(e.Text, "Asked: the origin.") {
			t.Errorf("Why of what nobody has = %q", e.Text)
		}
		b, err := v.nodes[0].Digest("p1")
		f, err2 := digest.DecodeFilter(b, digest.Limits{Profile: digest.HTTP})
		if err != nil || err2 != nil || f.Keys() != 1 {
			t.Errorf("Digest = %v, %v, %v", f, err, err2)
		}
		if _, err := v.nodes[0].Digest("nobody"); err != admin.ErrNoDigest {
			t.Errorf("Digest of nobody = %v", err)
		}
	})
}

// The status page has samples, the requests between each two peers, and the plan of the digest.
func TestClusterAndHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 3, map[string]int64{"/x": 1000, "/y": 1000})
		defer v.stop()
		pause(3 * time.Second)
		for _, i := range []int{1, 0, 2} {
			if err := v.get(i, "/x"); err != nil {
				t.Fatal(err)
			}
			pause(3 * time.Second)
		}
		all := v.nodes[0].Cluster(t.Context())
		rows := all.Peers
		if len(rows) != 3 || rows[0].Peer != "p0" || len(rows[1].Asked) != 2 || rows[2].Others != 2 {
			t.Fatalf("Cluster = %+v", rows)
		}
		if want := (admin.Figures{Requests: 3, Hits: 2, SiblingHits: 2, ToOrigins: 1, BytesToClients: 3000, BytesFromOrigins: 1000, BytesSaved: 2000}); all.All != want {
			t.Errorf("the whole cluster: %+v, want %+v", all.All, want)
		}
		served := int64(0)
		for _, r := range rows {
			for _, a := range r.Asked {
				served += a.Hits
			}
			if r.State != "serving" || len(r.Troubles) > 0 {
				t.Errorf("%s is %s: %s", r.Peer, r.State, r.Troubles)
			}
		}
		if served != 2 {
			t.Errorf("%d objects came from siblings, want 2: %+v", served, rows)
		}
		pause(3 * admin.HistoryStep)
		h := v.nodes[0].History()
		if len(h) < 4 || h[1].At.Sub(h[0].At) != admin.HistoryStep {
			t.Errorf("%d samples: %+v", len(h), h)
		}
		if last := h[len(h)-1]; last.BytesToClients != 1000 || last.FromSiblings != 1000 || last.Inserts != 1 || last.Vectors == 0 {
			t.Errorf("the last sample: %+v", last)
		}
	})
}
