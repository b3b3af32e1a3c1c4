package gossip

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
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
			cfg.Digests = Ask
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

// found reports whether a light node finds an object at its holder.
func found(from *Node, peer, i int, name string) bool {
	for _, c := range from.Ask(context.Background(), []string{"elsewhere", objectOf(peer, i)})[1] {
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
		if all := nodes[0].Ask(context.Background(), []string{objectOf(5, 1)}); all != nil {
			t.Errorf("a full peer asks: %v", all)
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

// TestLiarIsNotBelievedAlone checks that a second full peer is asked as well while the first names peers that lack what they
// are named for, and no longer when it has named enough that have it.
func TestLiarIsNotBelievedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := lightCluster(t, 4, 2, 200, nil)
		defer c.close()
		asker := nodes[3]
		questions := func(i int) (sent int64, all []Candidate) {
			before := asker.Stats().Questions.Asked
			all = asker.Ask(t.Context(), []string{objectOf(2, i)})[0]
			return asker.Stats().Questions.Asked - before, all
		}
		sent, one := questions(0)
		if sent != 1 || len(one) == 0 || one[0].FalsePositiveRate > 0.01 {
			t.Fatalf("%d questions, answered by %+v, want 1", sent, one)
		}
		judge := func(times int, has bool) { // by both full peers, since either may be asked first
			for i := range 2 * times {
				c := one[0]
				c.Via = nodes[i%2].Name()
				asker.Judge(c, has)
			}
		}
		judge(20, false)
		if sent, two := questions(1); sent != 2 || len(two) != 1 {
			t.Errorf("%d questions found %+v, want 2 and one candidate", sent, two)
		}
		judge(200, true)
		if sent, _ := questions(2); sent != 1 {
			t.Errorf("%d questions to a full peer that has been right for long, want 1", sent)
		}
		if q := asker.Stats().Questions; q.Named != 440 || q.False != 40 {
			t.Errorf("counted %+v, want 440 named and 40 false", q)
		}
	})
}

// TestNobodyWaitsForTheDead checks that lookups wait no longer once all full peers have died, which membership does not know yet,
// and that one which is there again is asked.
func TestNobodyWaitsForTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := lightCluster(t, 4, 2, 50, nil)
		defer c.close()
		c.net.Partition([]string{"10.1.0.1", "10.1.0.2"}, []string{"10.1.0.3", "10.1.0.4"})
		begin := time.Now()
		for i := range 50 {
			found(nodes[3], 2, i, "")
		}
		if took := time.Since(begin); took == 0 || took > 3*200*time.Millisecond {
			t.Errorf("50 lookups took %v, want that of three at most", took)
		}
		c.net.Heal()
		time.Sleep(3 * time.Second)
		if !found(nodes[3], 2, 1, nodes[2].Name()) {
			t.Error("full peers that are there again are not asked")
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
		inZone, all := 0, nodes[n-1].Ask(t.Context(), []string{"of all"})[0]
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

// TestOwnZoneIsAskedAgain checks that full peers of the own zone are asked, although questions to each of them are lost now
// and then.
func TestOwnZoneIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := lightCluster(t, 5, 4, 50, func(i int, c *Config) { c.Zone = fmt.Sprint("z", i%2) })
		defer c.close()
		c.net.SetConditions(memnet.Conditions{Loss: 0.02, Latency: 300 * time.Microsecond})
		before := []int64{nodes[0].Stats().Questions.Answered, nodes[1].Stats().Questions.Answered, nodes[2].Stats().Questions.Answered, nodes[3].Stats().Questions.Answered}
		const looks = 3000
		for i := range looks {
			found(nodes[4], 1, i%50, "")
			time.Sleep(100 * time.Millisecond)
		}
		far := nodes[1].Stats().Questions.Answered - before[1] + nodes[3].Stats().Questions.Answered - before[3]
		near := nodes[0].Stats().Questions.Answered - before[0] + nodes[2].Stats().Questions.Answered - before[2]
		t.Logf("full peers of the own zone answered %d questions, those of the other %d", near, far)
		if near < looks*90/100 {
			t.Errorf("full peers of the own zone answered %d questions, those of the other %d, want 90 %% at least of %d", near, far, looks)
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
			cfg.Digests = Ask
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
