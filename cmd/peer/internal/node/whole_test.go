package node

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// A request to one peer for the status of the cluster returns all peers within a second: those that
// answer, one that is dead, one that does not answer, and one that is alone.
func TestWholeCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 5, map[string]int64{"/x": 1000})
		defer v.stop()
		pause(3 * time.Second)
		for i := range 3 {
			if err := v.get(i, "/x"); err != nil {
				t.Fatal(err)
			}
			pause(time.Second)
		}
		ask := func() (c admin.Cluster, holders []admin.Holder, text string) {
			t.Helper()
			pause(2 * clusterFor)
			start := time.Now()
			c = v.nodes[0].Cluster(t.Context())
			if took := time.Since(start); took >= time.Second {
				t.Errorf("the cluster's figures came after %v, want less than a second", took)
			}
			start = time.Now()
			holders = v.nodes[0].Holders(t.Context(), admin.WhyRequest{URL: "/x"})
			if took := time.Since(start); took >= time.Second {
				t.Errorf("what the others hold came after %v, want less than a second", took)
			}
			return c, holders, admin.ClusterText(c)
		}
		v.hosts[3].Kill()
		for waited := 0; v.nodes[0].Status().Members[3].State != "dead"; waited++ {
			if waited == 100 {
				t.Fatalf("p3 is not found dead: %+v", v.nodes[0].Status().Members)
			}
			pause(time.Second)
		}
		v.hosts[4].Freeze() // it counts as alive until the others notice
		defer v.hosts[4].Thaw()
		start := time.Now()
		c, holders, text := ask()
		said := ""
		for _, r := range c.Peers {
			said += r.Peer + " " + r.State + ", "
		}
		if want := "p0 serving, p1 serving, p2 serving, p4 no answer, p3 dead, "; said != want {
			t.Errorf("%v after the freeze: %q, want %q\n%s", time.Since(start), said, want, text)
		}
		if c.All.Requests != 3 || c.All.BytesSaved != 2000 {
			t.Errorf("the sums of those that answer: %+v", c.All)
		}
		for _, want := range []string{"3 of 5", "p3: dead for ", "p4: no answer within a second"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		held := ""
		for _, h := range holders {
			held += fmt.Sprintf("%s %d %s, ", h.Peer, len(h.Stored), strings.TrimRight(h.Error, "0123456789 smin"))
		}
		if want := "p1 1 , p2 1 , p4 0 no answer within a second, p3 0 dead for, "; held != want {
			t.Errorf("holders of /x: %q, want %q", held, want)
		}
		if s := holders[0].Stored[0]; s.Status != 200 || s.Bytes != 1000 || s.ETag == "" && s.LastModified == "" || s.Age < 1 || s.Age > 3600 || s.Date.IsZero() || !s.Selected {
			t.Errorf("p1 holds %+v", s)
		}
	})
}

// Peers that are late with a purge don't keep this one from reporting what it removed itself.
func TestPurgeWithASilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 3, map[string]int64{"/x": 10})
		defer v.stop()
		pause(3 * time.Second)
		v.hosts[2].Freeze()
		defer v.hosts[2].Thaw()
		for range 12 {
			if err := v.get(0, "/x"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // a body is stored after its client has received it
			r, err := v.nodes[0].Purge(t.Context(), admin.PurgeRequest{URL: "/x", Everywhere: true})
			if err != nil || len(r.Peers) != 3 || *r.Peers[0].Removed != 1 || r.Peers[0].Error != "" || r.Failed() != 1 {
				t.Fatalf("Purge = %+v, %v", r, err)
			}
		}
	})
}
