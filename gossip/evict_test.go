package gossip

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// TestLateNewcomersBelieveTheLiving: one of two peers, the other of which joined much later, was made to
// take an incarnation beyond the other's bound. Then the late one gets a message of the death of an
// early one. All stay members of each other, also two seconds later. A peer that is restarted then is
// known in its new life.
func TestLateNewcomersBelieveTheLiving(t *testing.T) {
	incarnations := []uint32{3300, 1<<32 - 1, 1 << 21, guard.IncarnationLast}
	if testing.Short() {
		incarnations = incarnations[:2]
	}
	for _, incarnation := range incarnations {
		for _, first := range []string{"the victim", "the newcomer", "everybody"} {
			for _, alive := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d/%s/alive=%v", incarnation, first, alive), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { lateNewcomer(t, incarnation, first, alive) })
				})
			}
		}
	}
}

func lateNewcomer(t *testing.T, incarnation uint32, first string, alive bool) {
	c, gone := plainCluster(t)
	defer c.close()
	packet, end := stranger(c)
	defer end()
	time.Sleep(2 * time.Minute)
	start := func(name, ip string) *Node {
		cfg := c.config(name, ip)
		cfg.Secret, cfg.Holdings, cfg.Join = nil, NewHoldings(newFilter(t, nil)), []string{"10.0.0.1:7946", "10.0.0.2:7946"}
		cfg.Hooks.PeerDown = func(Member) { gone.Add(1) }
		return c.start(cfg)
	}
	start("p4", "10.0.0.4")
	within(t, settling, c.inStep)

	victim := c.nodes["p3"]
	meta, versions := delegate{victim.group}.NodeMeta(0), []byte{1, 5, 2, 0, 0, 0}
	for round := range uint32(10) {
		for to := range c.nodes {
			if to == "p3" && first == "the newcomer" || to != "p3" && first == "the victim" {
				continue
			}
			at := incarnation - round
			if alive {
				packet(guard.AliveMessage(guard.Claim{Name: "p3", Incarnation: uint64(at), Addr: victim.advertise, Meta: meta, Versions: versions}), to)
			} else {
				packet(wordOf(guard.MsgSuspect, "p3", "x", at), to)
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
	for range 10 {
		for to := range c.nodes {
			for _, at := range []uint32{1, 1000, incarnation - 600, incarnation, incarnation + min(600, 1<<32-1-incarnation)} {
				packet(deadMessage("p3", at), to)
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	for name, n := range c.nodes {
		for _, m := range n.memberlist.Members() {
			if m.State != memberlist.StateAlive {
				t.Errorf("2 s later %s is in state %d for %s", m.Name, m.State, name)
			}
		}
	}
	time.Sleep(30 * time.Second)
	if n := gone.Load(); n != 0 {
		t.Errorf("a live peer was down %d times", n)
	}

	c.kill("p3")
	began := start("p3", "10.0.0.3").incarnation.Load()
	within(t, 20*time.Second, func() error {
		for name, n := range c.nodes {
			if name == "p3" {
				continue
			}
			if m := (*n.members.Load())["p3"]; !m.up.Load() || m.info.Load().meta.Incarnation != began {
				return fmt.Errorf("%s does not know the new life of p3", name)
			}
		}
		return nil
	})
}
