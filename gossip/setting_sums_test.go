package gossip

import (
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnlike: two members that have other settings for what both have say so, both, until one of them is changed. Members of an earlier
// program, and what one of them alone has, are nobody's fault.
func TestUnlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		logs := map[string]*lines{}
		many := map[string]uint64{"shop": 1, "docs": 7}
		for i := range 40 {
			many[fmt.Sprint("host-", i)] = uint64(i)
		}
		for i, settings := range []map[string]uint64{{"shop": 1, "docs": 2}, {"shop": 1 << 16, "wiki": 3}, nil, many} {
			cfg := c.config(fmt.Sprint("p", i+1), fmt.Sprintf("10.0.0.%d", i+1))
			if i > 0 {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			cfg.Settings = settings
			logs[cfg.Name] = new(lines)
			cfg.Logger = slog.New(slog.NewTextHandler(logs[cfg.Name], nil))
			c.start(cfg)
		}
		within(t, settling, c.inStep)
		p1, p2, p3 := c.nodes["p1"], c.nodes["p2"], c.nodes["p3"]
		of := func(n *Node, member string) []string {
			for _, u := range n.Inside().SettingsDiffer() {
				if u.Member == member {
					return u.Names
				}
			}
			return nil
		}
		if got, want := of(p1, "p2"), []string{"shop"}; !reflect.DeepEqual(got, want) || !reflect.DeepEqual(of(p2, "p1"), want) {
			t.Errorf("p1 finds %v unlike at p2, and p2 %v, want %v", got, of(p2, "p1"), want)
		}
		if got := p3.Inside().SettingsDiffer(); got != nil {
			t.Errorf("p3, which has no settings, finds %v", got)
		}
		if n := len(c.nodes["p4"].memberlist.LocalNode().Meta); n > 220 {
			t.Errorf("metadata of %d bytes", n)
		}
		for name, other := range map[string]string{"p1": "p2", "p2": "p1"} {
			if len(logs[name].with("other settings", "member="+other, "[shop]")) == 0 {
				t.Errorf("%s does not log it", name)
			}
		}
		p2.Inside().SetSettings(map[string]uint64{"shop": 1, "wiki": 3})
		within(t, settling, func() error {
			if a, b := of(p1, "p2"), of(p2, "p1"); a != nil || b != nil {
				return fmt.Errorf("unlike still: %v, %v", a, b)
			}
			return c.inStep()
		})
		time.Sleep(time.Second)
	})
}
