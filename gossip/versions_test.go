package gossip

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// TestVersionsUnderstandEachOther has peers of both protocol versions in one cluster:
// all come into step and stay there, and those of the first get nothing of the second.
func TestVersionsUnderstandEachOther(t *testing.T) {
	for name, secret := range map[string][]byte{"plain": nil, "a secret": testSecret} {
		t.Run(name, func(t *testing.T) { versionsUnderstandEachOther(t, secret) })
	}
}

func versionsUnderstandEachOther(t *testing.T, secret []byte) {
	synctest.Test(t, func(t *testing.T) {
		c, tap := newCluster(t), new(wiretap)
		defer c.close()
		for i := 1; i <= 5; i++ {
			ip := fmt.Sprintf("10.0.0.%d", i)
			cfg := c.config(fmt.Sprintf("p%d", i), ip)
			cfg.Network, cfg.Secret = tappedNetwork{tap, c.net.Host(ip)}, secret
			cfg.Holdings = NewHoldings(newFilter(t, secret))
			cfg.speaks = exchange.LeastVersion + uint8(i%2)
			if i > 1 {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			c.start(cfg)
		}
		for round := range 20 {
			for name, n := range c.nodes {
				n.Holdings().Add(fmt.Sprint(name, "/", round))
			}
			time.Sleep(3 * time.Second)
		}
		within(t, 10*time.Second, c.inStep)
		tap.mu.Lock()
		defer tap.mu.Unlock()
		for i := 1; i <= 5; i++ {
			got := tap.short[fmt.Sprintf("10.0.0.%d:7946", i)]
			if first := i%2 == 0; first && got > 0 || !first && got < 20 {
				t.Errorf("p%d, of version %d, was sent %d packets of version 2", i, 1+i%2, got)
			}
		}
		for name, n := range c.nodes {
			if s := n.Stats().Exchange; s.Rejected > 0 || s.AdvertsBad > 0 || s.SnapshotsIn > 4 {
				t.Errorf("%s: %+v", name, s)
			}
		}
	})
}
