package gossip

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestRestartGoesOn restarts a peer that has nearly the same contents again. The others fetch only the
// changes, and it fetches only the changes of theirs.
func TestRestartGoesOn(t *testing.T) {
	for _, changed := range []int{0, 20} {
		t.Run(fmt.Sprintf("changed=%d", changed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { restartGoesOn(t, changed) })
		})
	}
}

func restartGoesOn(t *testing.T, changed int) {
	c := newCluster(t)
	defer c.close()
	c.startMany(3)
	file := filepath.Join(t.TempDir(), "state")
	again := func(from int) *Node {
		cfg := c.config("p4", "10.0.0.4")
		cfg.Join, cfg.StateFile = []string{"10.0.0.1:7946"}, file
		for i := range 2000 {
			cfg.Holdings.Keys().Add(key("p4", from+i))
		}
		return c.start(cfg)
	}
	p4 := again(0)
	for i := range 2000 {
		c.nodes["p1"].cfg.Holdings.Keys().Add(key("p1", i))
	}
	within(t, settling, c.inStep)
	before := published(p4)
	snapshots := make(map[string]int64)
	for name, n := range c.nodes {
		snapshots[name] = n.Stats().Exchange.SnapshotsReceived
	}
	c.kill("p4")
	time.Sleep(10 * time.Second)
	p4 = again(changed)
	within(t, settling, c.inStep)

	v := published(p4)
	if v.Incarnation <= before.Incarnation || v.Epoch != before.Epoch || v.Sequence != before.Sequence+uint64(min(changed, 1)) {
		t.Errorf("p4 went on with %v after %v", v, before)
	}
	for name, n := range c.nodes {
		s := n.Stats().Exchange
		if name == "p4" {
			snapshots[name] = 0
		}
		if got := s.SnapshotsReceived - snapshots[name]; got != 0 {
			t.Errorf("%s fetched %d snapshots after the restart", name, got)
		}
		if name == "p4" {
			continue
		}
		if !holders(n, key("p4", changed))["p4"] || holders(n, key("p4", 0))["p4"] != (changed == 0) {
			t.Errorf("%s answers from the former life of p4", name)
		}
	}
}

// TestRestartWithOtherContents: none of the contents that a former life published is left.
func TestRestartWithOtherContents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(2)
		cfg := c.config("p3", "10.0.0.3")
		cfg.Join, cfg.StateFile = []string{"10.0.0.1:7946"}, filepath.Join(t.TempDir(), "state")
		for i := range 100 {
			cfg.Holdings.Keys().Add(key("p3", i))
		}
		c.start(cfg)
		within(t, settling, c.inStep)
		c.kill("p3")
		cfg.Holdings = NewHoldings(newFilter(t, testSecret))
		cfg.Holdings.Keys().Add(key("p3", 1000))
		cfg.Network = c.net.Host("10.0.0.3")
		c.start(cfg)
		within(t, settling, c.inStep)
		for _, name := range []string{"p1", "p2"} {
			if n := c.nodes[name]; holders(n, key("p3", 5))["p3"] || !holders(n, key("p3", 1000))["p3"] {
				t.Errorf("%s answers from the former life", name)
			}
		}
	})
}
