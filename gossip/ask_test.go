package gossip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/insider"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// lightCluster starts nodes of which the first ones keep digests, and waits until all know each other.
func lightCluster(t *testing.T, n, full, objects int, more func(i int, c *Config)) (*cluster, []*Node) {
	t.Helper()
	c := newCluster(t)
	var nodes []*Node
	for i := range n {
		cfg := c.config(fmt.Sprintf("p%03d", i), fmt.Sprintf("10.1.%d.%d", i/200, 1+i%200))
		cfg.Holdings = nil
		cfg.Objects = objects
		if i >= full {
			cfg.Light = true
		}
		if i > 0 {
			cfg.Join = []string{nodes[0].Addr()}
		}
		if more != nil {
			more(i, &cfg)
		}
		node := c.start(cfg)
		for j := range objects {
			node.Holdings().Add(objectOf(i, j))
		}
		nodes = append(nodes, node)
	}
	time.Sleep(time.Minute) // a full peer that missed an advert hears of it when no sum was equal for long
	return c, nodes
}

func objectOf(peer, i int) string { return fmt.Sprintf("object %d of %d", i, peer) }

// ask asks those that keep digests, one after another, beginning with any; package sibling decides better.
func ask(from *Node, identities ...string) [][]Candidate {
	keepers, _ := from.Inside().Keepers()
	for _, i := range rand.Perm(len(keepers)) {
		k := keepers[i]
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		all, err := inside{from}.Ask(ctx, k.Name, identities)
		cancel()
		if err == nil {
			return all
		}
	}
	return make([][]Candidate, len(identities))
}

// found reports whether a light node finds an object at its holder.
func found(from *Node, peer, i int, name string) bool {
	for _, c := range ask(from, "elsewhere", objectOf(peer, i))[1] {
		if c.Peer == name && c.Via != "" && c.Service != "" {
			return true
		}
	}
	return false
}

// TestLightPeersAsk checks that light peers find what others hold, hold nothing themselves, and go on when all but one of
// the full peers are killed.
func TestLightPeersAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, full = 12, 3
		c, nodes := lightCluster(t, n, full, 50, nil)
		look := func(when string, most int) {
			t.Helper()
			missed, all := 0, 0
			for i := full; i < n; i++ {
				for j := range n {
					if i != j && nodes[j].ctx.Err() == nil {
						all++
						if !found(nodes[i], j, i, nodes[j].Name()) {
							missed++
						}
					}
				}
			}
			if missed > most {
				t.Errorf("%d of %d objects were not found %s", missed, all, when)
			}
		}
		look("in a cluster at rest", 0)
		for _, node := range nodes {
			if s := node.Stats(); s.Light && s.Replicas != 0 || !s.Light && (s.Replicas != n-1 || s.Behind != 0) {
				t.Errorf("%s: light %v, %d replicas, %d behind", node.Name(), s.Light, s.Replicas, s.Behind)
			}
		}
		if s := nodes[full].Stats(); s.Exchange.Agreed == 0 || s.Questions.Asked == 0 || s.Questions.Unanswered > 0 {
			t.Errorf("a light peer: %d equal sums, questions %+v", s.Exchange.Agreed, s.Questions)
		}
		if _, asks := nodes[0].Inside().Keepers(); asks {
			t.Error("a full peer asks")
		}
		for _, node := range nodes[1:full] {
			c.kill(node.Name())
		}
		look("right after two of three full peers were killed", n-full) // each asker finds out
		look("soon after two of three full peers were killed", 0)
		time.Sleep(20 * time.Second)
		look("when their deaths are known", 0)
		c.close()
	})
}

// TestJudgementsAreCounted checks what an answer was worth in the counters.
func TestJudgementsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := lightCluster(t, 2, 1, 10, nil)
		defer c.close()
		for i, w := range []insider.Worth{insider.Right, insider.Right, insider.Right, insider.Wrong, insider.Wrong, insider.Misled, insider.Withheld} {
			nodes[1].Inside().Judge(nodes[0].Name(), w, i > 4)
		}
		if q := nodes[1].Stats().Questions; q.Named != 6 || q.False != 3 || q.Misled != 1 || q.Withheld != 1 {
			t.Errorf("counted %+v", q)
		}
	})
}

// TestNobodyAnswers checks the errors of questions that cannot be asked or get no answer.
func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := lightCluster(t, 3, 2, 10, nil)
		defer c.close()
		c.net.Partition([]string{"10.1.0.1"}, []string{"10.1.0.2", "10.1.0.3"})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := (inside{nodes[2]}).Ask(ctx, nodes[0].Name(), []string{"x"}); !errors.Is(err, context.DeadlineExceeded) || nodes[2].Stats().Questions.Unanswered != 1 {
			t.Errorf("cut off: %v, %+v", err, nodes[2].Stats().Questions)
		}
		if _, err := (inside{nodes[2]}).Ask(t.Context(), "stranger", []string{"x"}); !errors.Is(err, ErrUnreachable) {
			t.Errorf("a stranger: %v", err)
		}
		if many, err := (inside{nodes[2]}).Ask(t.Context(), nodes[1].Name(), make([]string, 100)); err != nil || len(many) != 100 {
			t.Errorf("a hundred identities: %d, %v", len(many), err)
		}
	})
}

// TestNotYet checks that a full peer that has just begun says so, and that another one is asked instead.
func TestNotYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := lightCluster(t, 6, 1, 50, nil)
		defer c.close()
		cfg := c.config("late", "10.1.9.9")
		cfg.Join = []string{nodes[0].Addr()}
		late := c.start(cfg)
		for range 100 {
			for i := 1; i < 5; i++ {
				if !found(nodes[i], 5, i, nodes[5].Name()) {
					t.Fatalf("%s does not find what another has while a full peer is new", nodes[i].Name())
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		var notYet int64
		for _, n := range nodes {
			notYet += n.Stats().Questions.NotYet
		}
		if q := late.Stats().Questions; q.Deferred == 0 || q.Deferred != notYet || q.Answered <= q.Deferred {
			t.Errorf("the new peer answered %+v, and the others heard \"not yet\" %d times", q, notYet)
		}
	})
}

// TestRepliesNameTheZoneFirst checks that of more holders than a reply has room for, it names all of the asker's zone.
func TestRepliesNameTheZoneFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, near = 44, 10
		c, nodes := lightCluster(t, n, 1, 10, func(i int, c *Config) { c.Zone = map[bool]string{true: "near", false: "far"}[i >= n-near] })
		defer c.close()
		for _, node := range nodes[1 : n-1] {
			node.Holdings().Add("of all")
		}
		time.Sleep(10 * time.Second)
		inZone, all := 0, ask(nodes[n-1], "of all")[0]
		for _, c := range all {
			if c.Zone == "near" {
				inZone++
			}
		}
		if len(all) != exchange.MaxHolders || inZone != near-1 {
			t.Errorf("%d holders were named, %d of the asker's zone; want %d and %d", len(all), inZone, exchange.MaxHolders, near-1)
		}
	})
}

// TestLightPeersMissAMember: a light peer that gets no datagram while another peer joins knows that one soon afterwards, although
// neither digests nor vectors tell a light peer of it.
func TestLightPeersMissAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, full = 12, 3
		c, nodes := lightCluster(t, n, full, 10, nil)
		defer c.close()
		deaf := nodes[n-1]
		for round := range 4 {
			hear := func(l memnet.Conditions) {
				for _, ip := range c.ips {
					if to := c.ips[deaf.Name()]; ip != to {
						c.net.SetLink(ip, to, l)
					}
				}
			}
			hear(memnet.Conditions{Loss: 1})
			cfg := c.config(fmt.Sprint("late", round), fmt.Sprintf("10.1.9.%d", 1+round))
			cfg.Light = true
			cfg.Join = []string{nodes[0].Addr()}
			c.start(cfg)
			c.net.SetLink(c.ips[cfg.Name], c.ips[deaf.Name()], memnet.Conditions{Loss: 1})
			time.Sleep(2 * time.Second)
			hear(memnet.Conditions{})
			within(t, 10*time.Second, func() error {
				if deaf.live(cfg.Name) == nil {
					return fmt.Errorf("%s does not know %s", deaf.Name(), cfg.Name)
				}
				return nil
			})
		}
	})
}
