package gossip

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeathIsNoticed kills peers of idle clusters, one after another, and logs how long it takes until
// all others count each as dead, with the default settings.
func TestDeathIsNoticed(t *testing.T) {
	for _, tc := range []struct {
		peers, deaths int
		median, worst time.Duration // at most
	}{
		{3, 8, 7 * time.Second, 9 * time.Second},
		{10, 8, 8 * time.Second, 13 * time.Second},
		{40, 8, 10 * time.Second, 17 * time.Second},
	} {
		if testing.Short() && tc.peers > 10 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			defer c.close()
			for i := 1; i <= tc.peers; i++ {
				cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
				cfg.detect = detection{}
				if i > 1 {
					cfg.Join = []string{"10.0.0.1:7946"}
				}
				c.start(cfg)
			}
			time.Sleep(time.Minute)
			var took []time.Duration
			for i := range tc.deaths {
				victim := fmt.Sprintf("p%d", 2+i%(tc.peers-1))
				cfg := c.nodes[victim].cfg
				c.kill(victim)
				took = append(took, within(t, time.Minute, func() error {
					for _, n := range c.nodes {
						if m := (*n.members.Load())[victim]; m == nil || m.up.Load() {
							return fmt.Errorf("%s takes %s for alive", n.cfg.Name, victim)
						}
					}
					return nil
				}))
				// Another one takes its place.
				ip := c.ips[victim]
				again := c.config(victim, ip)
				again.detect, again.Join = detection{}, cfg.Join
				c.start(again)
				time.Sleep(10 * time.Second)
			}
			slices.Sort(took)
			median, worst := took[len(took)/2], took[len(took)-1]
			t.Logf("%d peers: a death is known to all others after %v in the median, %v at worst", tc.peers, median, worst)
			if median > tc.median || worst > tc.worst {
				t.Errorf("%d peers: a death is known to all others after %v in the median, %v at worst, want at most %v and %v",
					tc.peers, median, worst, tc.median, tc.worst)
			}
		})
	}
}
