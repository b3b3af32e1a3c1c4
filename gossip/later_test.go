package gossip

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// TestLaterPeers: peers of today and peers with the longest metadata that a later program may have are one cluster, and
// packets of kinds that do not exist yet change nothing (PROTOCOL.md, section 9).
func TestLaterPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		start := func(name string, i int, join string, later bool) {
			cfg := c.config(name, fmt.Sprintf("10.0.0.%d", i))
			if join != "" {
				cfg.Join = []string{join}
			}
			if later {
				today := 15 + 1 + len(cfg.Service) + 1 + 4 + 1 + 1 + 2 + exchange.FarewellBytes
				cfg.later = bytes.Repeat([]byte{0xff}, memberlist.MetaMaxSize-today)
			}
			c.start(cfg)
		}
		start("p1", 1, "", false)
		start("p2", 2, "10.0.0.1:7946", true)
		start("p3", 3, "10.0.0.2:7946", false)
		start("p4", 4, "10.0.0.3:7946", true)
		within(t, settling, c.inStep)
		if m := (*c.nodes["p3"].members.Load())["p4"]; len(c.nodes["p4"].memberlist.LocalNode().Meta) != memberlist.MetaMaxSize || m.info.Load().meta.Service == "" {
			t.Fatal("p4 has no later fields")
		}
		for _, first := range []byte{0x10, 0x15, 0x1a, 0x1b, 0x1d, 0x24, 0x2f, 0x30, 0xdf, 0xe0, 0xe3, 0xef} {
			for _, to := range []string{"p1", "p4"} {
				packet := append([]byte{first}, make([]byte, 40)...)
				if err := c.nodes["p2"].transport.write(packet, c.nodes[to].advertise); err != nil {
					t.Fatal(err)
				}
			}
		}
		agreed := map[string]int64{}
		for i, name := range []string{"p1", "p2", "p3", "p4"} {
			agreed[name] = c.nodes[name].Stats().Exchange.Agreed
			c.nodes[name].cfg.Holdings.Keys().Add(key(name, i))
		}
		within(t, settling, c.inStep)
		time.Sleep(time.Minute)
		for name, n := range c.nodes {
			if got := n.Stats().Exchange.Agreed; got == agreed[name] {
				t.Errorf("%s has had the same sum as another peer %d times, and not once since", name, got)
			}
		}
	})
}
