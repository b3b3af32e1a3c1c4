package gossip

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNamesSwap: two peers die, and each comes back at the address of the other. Both are alive there as soon as names are free.
func TestNamesSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(4)
		time.Sleep(5 * time.Second)
		c.kill("p2")
		c.kill("p3")
		for name, ip := range map[string]string{"p2": "10.0.0.3", "p3": "10.0.0.2"} {
			cfg := c.config(name, ip)
			cfg.Join = []string{"10.0.0.1:7946"}
			c.start(cfg)
		}
		within(t, time.Minute, func() error { // an exchange of member lists may be needed
			for _, n := range c.nodes {
				for name, ip := range map[string]string{"p2": "10.0.0.3", "p3": "10.0.0.2"} {
					if m := n.live(name); n.cfg.Name != name && (m == nil || m.info.Load().addr.Addr().String() != ip) {
						return fmt.Errorf("%s does not take %s for alive at %s", n.cfg.Name, name, ip)
					}
				}
			}
			return nil
		})
	})
}

// TestNamesThatDie: processes come up at one address, one after another, each with a new name, and are killed when they are known, as in a
// crash loop. The names of those before are dead as soon as the next one has answered there, at all peers.
func TestNamesThatDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		start := func(name, ip string, join ...string) *Node {
			cfg := c.config(name, ip)
			cfg.detect, cfg.Join = detection{}, join
			return c.start(cfg)
		}
		a := start("a", "10.0.0.1")
		others := []*Node{a, start("b", "10.0.0.2", "10.0.0.1:7946"), start("c", "10.0.0.3", "10.0.0.1:7946")}
		time.Sleep(5 * time.Second)
		pods := func(n *Node) (alive []string) {
			for _, m := range n.liveMembers() {
				if strings.HasPrefix(m.name, "pod") {
					alive = append(alive, m.name)
				}
			}
			return alive
		}
		for i := range 30 {
			name := fmt.Sprintf("pod%d", i)
			start(name, "10.0.0.9", "10.0.0.1:7946")
			within(t, 30*time.Second, func() error {
				for _, n := range others {
					if alive := pods(n); len(alive) != 1 || alive[0] != name {
						return fmt.Errorf("%s takes %v for alive, want %s", n.cfg.Name, alive, name)
					}
				}
				return nil
			})
			c.kill(name)
		}
		time.Sleep(20 * time.Second)
		for _, n := range others {
			if alive := pods(n); len(alive) > 0 {
				t.Errorf("20 s after the last death %s takes %v for alive", n.cfg.Name, alive)
			}
			if s := n.Stats().Exchange; s.Rejected != 0 {
				t.Errorf("%s has rejected %d answers of peers that were only restarted", n.cfg.Name, s.Rejected)
			}
		}
	})
}
