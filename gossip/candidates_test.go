package gossip

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The digest of a peer that is distrusted is fetched anew, and the peer stays a candidate.
func TestDistrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(3)
		for i := range 10 {
			c.nodes["p2"].cfg.Holdings.Keys().Add(key("x", i))
		}
		within(t, settling, c.inStep)
		n := c.nodes["p1"]
		n.Distrust("p2")
		n.Distrust("stranger")
		time.Sleep(time.Second)
		if s := n.Stats(); s.Exchange.Divergences != 1 || s.Behind != 0 || !holders(n, key("x", 1))["p2"] {
			t.Errorf("%d divergences, %d behind, candidate %v, want 1, 0 and true", s.Exchange.Divergences, s.Behind, holders(n, key("x", 1))["p2"])
		}
	})
}

func TestCandidatesSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(5)
		for name, n := range c.nodes {
			if name == "p1" {
				continue
			}
			for i := range 200 {
				n.cfg.Holdings.Keys().Add(key("x", i))
			}
		}
		within(t, settling, c.inStep)
		n := c.nodes["p1"]
		first := make(map[string]int)
		for i := range 200 {
			first[n.CandidatesByKey(nil, key("x", i))[0].Peer]++
		}
		for _, name := range []string{"p2", "p3", "p4", "p5"} {
			// Binomial with n=200, p=1/4: standard deviation 6.1; five of them.
			if got := first[name]; got < 50-31 || got > 50+31 {
				t.Errorf("of four equal candidates %s was first for %d of 200 keys", name, got)
			}
		}
		time.Sleep(time.Minute)
		for _, got := range n.CandidatesByKey(nil, key("x", 1)) {
			if got.Age < 0 || got.Age > time.Minute+10*time.Second || got.Service == "" || got.FalsePositiveRate <= 0 || got.Incarnation == 0 {
				t.Errorf("candidate %+v after a minute", got)
			}
		}
	})
}

func TestCandidatesDoNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(5)
		for name, n := range c.nodes {
			if name != "p1" {
				n.cfg.Holdings.Keys().Add(key("x", 1))
			}
		}
		within(t, settling, c.inStep)
		n := c.nodes["p1"]
		dst, k := make([]Candidate, 0, 8), key("x", 1)
		if got := testing.AllocsPerRun(100, func() { dst = n.CandidatesByKey(dst[:0], k) }); got != 0 || len(dst) != 4 {
			t.Errorf("%v allocations and %d candidates, want 0 and 4", got, len(dst))
		}
	})
}

func BenchmarkCandidates(b *testing.B) {
	nodes := startReal(b, 10, 10_000)
	eventually(b, time.Minute, allInStep(nodes))
	n := nodes[0]
	for _, bc := range []struct {
		name  string
		owner string
	}{{"miss", "nobody"}, {"hit", "p5"}} {
		b.Run(fmt.Sprintf("peers=10/%s", bc.name), func(b *testing.B) {
			k := key(bc.owner, 1)
			dst := make([]Candidate, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				dst = n.CandidatesByKey(dst[:0], k)
			}
		})
	}
}

// Peers announce their zones, and candidates of a peer's own zone are near. A peer without a zone is near to nobody.
func TestZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		zones := map[string]string{"p1": "a", "p2": "a", "p3": "b", "p4": ""}
		for i, name := range []string{"p1", "p2", "p3", "p4"} {
			cfg := c.config(name, fmt.Sprint("10.0.0.", i+1))
			if cfg.Zone = zones[name]; i > 0 {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			c.start(cfg).cfg.Holdings.Keys().Add(key("x", 1))
		}
		within(t, settling, c.inStep)
		for name, n := range c.nodes {
			for _, got := range n.CandidatesByKey(nil, key("x", 1)) {
				near := zones[name] != "" && zones[name] == zones[got.Peer]
				if got.Zone != zones[got.Peer] || got.Near != near {
					t.Errorf("to %s %s is in zone %q, near %v, want %q and %v", name, got.Peer, got.Zone, got.Near, zones[got.Peer], near)
				}
			}
			for _, m := range n.Members() {
				if m.Zone != zones[m.Name] {
					t.Errorf("to %s the member %s is in zone %q, want %q", name, m.Name, m.Zone, zones[m.Name])
				}
			}
		}
		if _, err := New(Config{Name: "p9", Advanced: Advanced{Zone: "a zone"}}); err == nil || !strings.Contains(err.Error(), `zone "a zone"`) {
			t.Errorf("a zone with a space: %v", err)
		}
	})
}
