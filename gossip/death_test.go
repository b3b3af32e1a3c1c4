package gossip

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var deaths = flag.Int("deaths", 1, "how many times as many peers TestDeathIsNoticed kills; its bounds were found with 4")

// TestDeathIsNoticed kills peers, one after another, and logs how long it takes until all others count each
// as dead, with the default settings: at rest, and where each peer has new objects as often as one that gets
// ten requests a second.
func TestDeathIsNoticed(t *testing.T) {
	for _, tc := range []struct {
		busy          bool
		peers, deaths int
		median, worst time.Duration // at most
	}{
		{true, 2, 8, 9 * time.Second, 11 * time.Second}, // of few deaths the median may be late
		{true, 3, 8, 7 * time.Second, 9 * time.Second},
		{true, 10, 8, 8 * time.Second, 13 * time.Second},
		{false, 2, 10, 9 * time.Second, 11 * time.Second},
		{false, 3, 25, 9 * time.Second, 15 * time.Second},
		{false, 5, 15, 9 * time.Second, 15 * time.Second},
		{false, 10, 15, 11 * time.Second, 15 * time.Second},
		{false, 40, 4, 13 * time.Second, 25 * time.Second}, // 18 s once in some 600 deaths
	} {
		tc.deaths *= *deaths
		if testing.Short() {
			tc.deaths = min(tc.deaths, 8)
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
				n := c.start(cfg)
				if tc.busy {
					go n.change(400 * time.Millisecond)
				}
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
				n := c.start(again)
				if tc.busy {
					go n.change(400 * time.Millisecond)
				}
				time.Sleep(10*time.Second + time.Duration(i)*377*time.Millisecond%time.Second)
			}
			slices.Sort(took)
			median, worst := took[len(took)/2], took[len(took)-1]
			t.Logf("%d peers, busy: %v: a death is known to all others after %v in the median, %v at worst", tc.peers, tc.busy, median, worst)
			if median > tc.median || worst > tc.worst {
				t.Errorf("%d peers, busy: %v: a death is known to all others after %v in the median, %v at worst, want at most %v and %v",
					tc.peers, tc.busy, median, worst, tc.median, tc.worst)
			}
		})
	}
}
