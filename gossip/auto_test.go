package gossip

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// autoCluster starts nodes in two zones, by turns, that decide for themselves whether they keep digests.
func autoCluster(t *testing.T, n int, index int64) (*cluster, []*Node) {
	return lightCluster(t, n, n, 200, func(i int, c *Config) {
		c.Digests, c.IndexBytes, c.Zone = Auto, index, fmt.Sprint("z", i%2)
	})
}

// keepers returns the live nodes of a zone that keep digests, and of these the ones that can answer for all.
func keepers(nodes []*Node, zone string) (full, complete []*Node) {
	for _, n := range nodes {
		if n.ctx.Err() == nil && n.cfg.Zone == zone && !n.light.Load() {
			full = append(full, n)
			if n.asking.complete.Load() {
				complete = append(complete, n)
			}
		}
	}
	return full, complete
}

// TestAutoPromotes checks that four peers of each zone keep digests if these are large, that others answer at once when all
// four of a zone are killed, and that the next four have taken their places in half a minute.
func TestAutoPromotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := autoCluster(t, 16, 2000)
		defer c.close()
		time.Sleep(2 * time.Minute)
		want := func(zone string, when string) []*Node {
			t.Helper()
			full, complete := keepers(nodes, zone)
			if len(full) != keepersOfZone || len(complete) != len(full) {
				t.Errorf("%s: %d peers of zone %s keep digests, %d of them all, want %d", when, len(full), zone, len(complete), keepersOfZone)
			}
			return full
		}
		look := func(when string) {
			t.Helper()
			for i, asker := range nodes {
				for j, holder := range nodes {
					if asker.ctx.Err() != nil || holder.ctx.Err() != nil || i == j || !asker.light.Load() {
						continue
					}
					if !found(asker, j, i, holder.Name()) {
						t.Errorf("%s: %s does not find what %s has", when, asker.Name(), holder.Name())
					}
				}
			}
		}
		dead := want("z0", "at rest")
		want("z1", "at rest")
		look("at rest")
		for _, n := range dead {
			c.kill(n.Name())
		}
		for _, n := range nodes { // each finds out, two at a lookup
			for range 2 {
				if n.ctx.Err() == nil && n.light.Load() {
					found(n, 0, 0, "")
				}
			}
		}
		look("with all keepers of a zone killed")
		time.Sleep(30 * time.Second)
		want("z0", "after half a minute")
		look("after half a minute")
		time.Sleep(2 * time.Minute)
		want("z0", "later")
		want("z1", "later")
	})
}

// TestAutoKeepsWhatIsSmall checks that all peers keep all digests, and ask nothing, while these take little memory.
func TestAutoKeepsWhatIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := autoCluster(t, 12, 0)
		defer c.close()
		time.Sleep(3 * time.Minute)
		for _, n := range nodes {
			if s := n.Stats(); s.Light || s.Replicas != len(nodes)-1 || s.Questions != (exchange.Questions{}) {
				t.Errorf("%s: light %v, %d digests, questions %+v", n.Name(), s.Light, s.Replicas, s.Questions)
			}
		}
	})
}

// TestAutoReturns checks that light peers keep digests again when few peers are left.
func TestAutoReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := autoCluster(t, 14, 5000)
		defer c.close()
		time.Sleep(2 * time.Minute)
		if full, _ := keepers(nodes, "z0"); len(full) != keepersOfZone {
			t.Fatalf("%d peers of a zone keep digests, want %d", len(full), keepersOfZone)
		}
		left := 0
		for _, n := range nodes {
			if n.light.Load() {
				if left++; left <= 3 {
					continue
				}
			}
			c.kill(n.Name())
		}
		time.Sleep(time.Minute)
		for _, n := range nodes {
			if s := n.Stats(); n.ctx.Err() == nil && (s.Light || s.Replicas != 2) {
				t.Errorf("%s, one of three: light %v, %d digests", n.Name(), s.Light, s.Replicas)
			}
		}
	})
}
