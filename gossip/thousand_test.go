package gossip

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
	"github.com/summarycache/summarycache/sim/cputime"
)

var thousand = flag.Int("nodes", 40, "nodes of TestThousandNodes, which publish nothing, and of TestManyLightPeers; a thousand take minutes")

var fullNodes = flag.Int("full", 0, "how many nodes of TestThousandNodes keep digests, while the others ask these; 0 = all")

// TestThousandNodes: many nodes that start at once come to know each other, none is taken for dead, all notice those that die, and a
// late one is known to all. It logs what membership costs. In virtual time a slow machine makes no death; there is no secret, since a
// handshake with each of the others takes most of the time of all.
func TestThousandNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.net.SetConditions(memnet.Conditions{Latency: 300 * time.Microsecond, Jitter: 200 * time.Microsecond, Loss: 0.001})
		defer c.close()
		var down atomic.Int64
		create := func(i int) *Node {
			ip := fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250)
			cfg := Config{Name: fmt.Sprintf("node-%04d", i), Bind: ip + ":7946", Service: ip + ":8080",
				Advanced: Advanced{Network: c.net.Host(ip), Hooks: Hooks{PeerDown: func(Member) { down.Add(1) }}}, Logger: testLog()}
			if *fullNodes > 0 && i >= *fullNodes {
				cfg.Light = true
			}
			for range min(i, 3) {
				at := rand.N(min(i, 10)) // ten seeds, as behind a name
				cfg.Join = append(cfg.Join, fmt.Sprintf("10.0.%d.%d:7946", at/250, 1+at%250))
			}
			n, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.nodes[cfg.Name], c.ips[cfg.Name] = n, ip
			return n
		}
		membership := func() map[string][2]int64 {
			all := make(map[string][2]int64)
			for name, n := range c.nodes {
				s := n.Stats()
				all[name] = [2]int64{s.In.Membership, s.Out.Membership}
			}
			return all
		}
		known := func(peers int) func() error {
			return func() error {
				time.Sleep(time.Second / 4)
				for name, n := range c.nodes {
					known := int(n.others.Load()) // Stats looks at each member
					if known == peers {
						known = n.Stats().Peers
					}
					if known != peers {
						return fmt.Errorf("%s knows %d others, want %d", name, known, peers)
					}
				}
				return nil
			}
		}
		measured := func(what string, do func()) {
			start, cpu, was := time.Now(), cputime.Used(), membership()
			do()
			took, cpu := time.Since(start), cputime.Used()-cpu
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			var in, out int64
			for name, now := range membership() {
				in, out = in+now[0]-was[name][0], out+now[1]-was[name][1]
			}
			nodes := float64(len(c.nodes))
			t.Logf("%s: %v, CPU %v (%.3f %% of a core a node), membership in %.0f out %.0f B a node and second, heap %.0f kB a node, %d deaths seen",
				what, took, cpu.Round(time.Millisecond), 100*cpu.Seconds()/took.Seconds()/nodes, float64(in)/took.Seconds()/nodes,
				float64(out)/took.Seconds()/nodes, float64(m.HeapInuse)/1000/nodes, down.Load())
		}
		total := *thousand
		if testing.Short() {
			total = min(total, 20)
		}
		measured("joining", func() {
			var wg sync.WaitGroup
			for i := range total {
				n := create(i)
				wg.Go(func() {
					if err := n.Join(t.Context()); err != nil {
						t.Logf("Join of %s: %v", n.Name(), err)
					}
				})
			}
			wg.Wait()
			within(t, 5*time.Minute, known(total-1))
		})
		time.Sleep(time.Minute)
		measured("at rest", func() { time.Sleep(5 * time.Minute) })
		if down.Load() > 0 {
			t.Errorf("%d deaths were seen where all live", down.Load())
		}
		dead := max(1, total/100)
		measured(fmt.Sprintf("%d die", dead), func() {
			for name := range c.nodes {
				if dead--; dead < 0 {
					break
				}
				c.kill(name)
			}
			within(t, 2*time.Minute, known(len(c.nodes)-1))
		})
		if want := int64((total - len(c.nodes)) * len(c.nodes)); down.Load() != want {
			t.Errorf("%d deaths were seen, want %d", down.Load(), want)
		}
		measured("one joins", func() {
			if err := create(total).Join(t.Context()); err != nil {
				t.Error(err)
			}
			within(t, time.Minute, known(len(c.nodes)-1))
		})
		late := c.nodes[fmt.Sprintf("node-%04d", total)]
		within(t, time.Minute, func() error { // all know the same, so their sums are equal
			for name, n := range c.nodes {
				if n.memberSum.Load() != late.memberSum.Load() || int(n.others.Load()) != len(c.nodes)-1 {
					return fmt.Errorf("%s has sum %x of %d others, %s %x", name, n.memberSum.Load(), n.others.Load(), late.Name(), late.memberSum.Load())
				}
			}
			return nil
		})
		s := late.Stats()
		t.Logf("of which membership, and thus the list: %d B in, %d B out", s.In.Membership, s.Out.Membership)
	})
}
