package gossip

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestClusterKeepsInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(5)
		for name, n := range c.nodes {
			for i := range 1000 {
				n.cfg.Filter.Add(key(name, i))
			}
		}
		within(t, 5*time.Second, c.inStep)

		c.nodes["p1"].cfg.Filter.Add(key("p1", 5000))
		took := within(t, time.Second, func() error {
			for name, n := range c.nodes {
				if got := holders(n, key("p1", 5000))["p1"]; got != (name != "p1") {
					return fmt.Errorf("Candidates at %s names p1: %v", name, got)
				}
			}
			return nil
		})
		t.Logf("a change was everywhere after %v", took)
		if took > 200*time.Millisecond {
			t.Errorf("a change took %v to be everywhere, want at most 200ms", took)
		}
		before := c.nodes["p2"].Stats().Exchange
		if before.DeltasIn == 0 {
			t.Error("the change did not travel as a delta")
		}

		time.Sleep(time.Minute)
		after := c.nodes["p2"].Stats().Exchange
		if after.AdvertsHeard != before.AdvertsHeard || after.Fetches != before.Fetches {
			t.Errorf("nothing changed for a minute, yet adverts went from %d to %d, fetches from %d to %d",
				before.AdvertsHeard, after.AdvertsHeard, before.Fetches, after.Fetches)
		}
	})
}
