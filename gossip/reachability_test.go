package gossip

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

// Nothing comes through from one of three peers to another, or between both. The third keeps them alive, and within a
// minute one of both says so, until it is over.
func TestPeersThatOnlyOthersReach(t *testing.T) {
	for name, both := range map[string]bool{"one way": false, "both ways": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				for i, name := range []string{"a", "b", "c"} {
					cfg := c.config(name, fmt.Sprint("10.0.0.", i+1))
					cfg.detect = detection{}
					if i > 0 {
						cfg.Join = []string{"10.0.0.1:7946"}
					}
					c.start(cfg)
				}
				said := func() (all []string) {
					for name, n := range c.nodes {
						for _, h := range n.Inside().HalfMembers() {
							all = append(all, name+": "+h.String())
							if (name != "b" || h.Name != "c") && (name != "c" || h.Name != "b") {
								t.Errorf("%s says %v", name, h)
							}
						}
					}
					return all
				}
				time.Sleep(10 * time.Second)
				c.net.Cut("10.0.0.2", "10.0.0.3")
				if both {
					c.net.Cut("10.0.0.3", "10.0.0.2")
				}
				time.Sleep(time.Minute)
				if len(said()) == 0 {
					t.Error("nobody says anything")
				}
				for name, n := range c.nodes {
					for _, m := range n.Members() {
						if !m.Alive {
							t.Errorf("at %s, %s is not alive", name, m.Name)
						}
					}
				}
				c.net.Heal()
				within(t, time.Minute, func() error {
					if all := said(); len(all) > 0 {
						return fmt.Errorf("they still say %q", all)
					}
					return nil
				})
			})
		})
	}
}

// TestHalfMembers: packets to or from one of three peers are lost, before it joins or afterwards, and streams are not. Within a minute it and
// another one say so, and nobody does where all is well; when packets arrive again, nobody says so any more.
func TestHalfMembers(t *testing.T) {
	lost := memnet.Conditions{Loss: 1}
	for name, tt := range map[string]struct {
		in, out, late bool // which packets of c are lost, and whether only after it has joined
	}{
		"nothing lost":  {},
		"to c":          {in: true},
		"from c":        {out: true},
		"both":          {in: true, out: true},
		"to c, later":   {in: true, late: true},
		"from c, later": {out: true, late: true},
		"both, later":   {in: true, out: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				logs := map[string]*lines{}
				start := func(name, ip string, join ...string) {
					cfg := c.config(name, ip)
					cfg.detect, cfg.Join = detection{}, join
					logs[name] = new(lines)
					cfg.Logger = slog.New(slog.NewTextHandler(logs[name], nil))
					c.start(cfg)
				}
				set := func(with memnet.Conditions) {
					for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
						if tt.in {
							c.net.SetLink(ip, "10.0.0.3", with)
						}
						if tt.out {
							c.net.SetLink("10.0.0.3", ip, with)
						}
					}
				}
				start("a", "10.0.0.1")
				start("b", "10.0.0.2", "10.0.0.1:7946")
				if !tt.late {
					set(lost)
				}
				start("c", "10.0.0.3", "10.0.0.1:7946")
				if tt.late {
					time.Sleep(10 * time.Second)
					set(lost)
				}
				time.Sleep(time.Minute)
				half := tt.in || tt.out
				check := func(half bool) error {
					if got := c.nodes["c"].Inside().HalfMembers(); (len(got) > 0) != half {
						return fmt.Errorf("c says %v of others, want something: %v", got, half)
					}
					others := 0
					for _, name := range []string{"a", "b"} {
						for _, h := range c.nodes[name].Inside().HalfMembers() {
							others++
							if h.Name != "c" || h.Addr != "10.0.0.3:7946" {
								return fmt.Errorf("%s says %v, want something of c alone", name, h)
							}
						}
					}
					if (others > 0) != half {
						return fmt.Errorf("a and b say %d things of c, want something: %v", others, half)
					}
					return nil
				}
				if err := check(half); err != nil {
					t.Error(err)
				}
				if said := logs["c"].with("only by half"); (len(said) > 0) != half {
					t.Errorf("c logs %q, want something: %v", said, half)
				}
				if !half {
					return
				}
				set(memnet.Conditions{})
				within(t, time.Minute, func() error { return check(false) })
			})
		})
	}
}
