package gossip

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/summarycache/summarycache/sim/cputime"
)

// startReal starts n peers on loopback, with real sockets, which join through the first. If that is too
// busy to answer in time, they keep trying.
func startReal(t testing.TB, n, keys int) []*Node {
	nodes := []*Node{realNode(t, "p0", keys)}
	for i := 1; i < n; i++ {
		nodes = append(nodes, realNode(t, fmt.Sprintf("p%d", i), keys, nodes[0].Addr()))
	}
	return nodes
}

func allInStep(nodes []*Node) func() error {
	return func() error {
		for _, n := range nodes {
			if err := replicas(n, len(nodes)-1)(); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestManyPeersComeIntoStep(t *testing.T) {
	peers := manyPeers
	if testing.Short() {
		peers = min(peers, 12)
	}
	start := time.Now()
	nodes := startReal(t, peers, 1000)
	eventually(t, 3*time.Minute, allInStep(nodes))
	t.Logf("%d peers with 1000 keys each had joined and were in step after %v", len(nodes), time.Since(start))
	nodes[7].cfg.Holdings.Keys().Add(key("p7", 1000))
	took := eventually(t, 3*time.Minute, func() error {
		for _, n := range nodes {
			if n != nodes[7] && !holders(n, key("p7", 1000))["p7"] {
				return fmt.Errorf("%s does not know of the change", n.Name())
			}
		}
		return nil
	})
	t.Logf("a change was at all of them after %v", took)
}

// BenchmarkManyPeers reports what one of fifty peers costs: while nothing changes,
// and while each changes 1% of 1000 keys a second.
func BenchmarkManyPeers(b *testing.B) {
	const peers, keys = 50, 1000
	for _, perSecond := range []int{0, 10} {
		b.Run(fmt.Sprintf("peers=%d/changes=%d", peers, perSecond), func(b *testing.B) {
			nodes := startReal(b, peers, keys)
			eventually(b, time.Minute, allInStep(nodes))
			time.Sleep(3 * time.Second) // for what joining stirred up to settle
			before, cpu := total(nodes), cputime.Used()
			start := time.Now()
			next := keys
			for range b.N {
				second := time.NewTimer(time.Second)
				for _, n := range nodes {
					for i := range perSecond {
						n.cfg.Holdings.Keys().Add(key(n.Name(), next+i))
						n.cfg.Holdings.Keys().Remove(key(n.Name(), next+i-keys))
					}
				}
				next += perSecond
				<-second.C
			}
			seconds := time.Since(start).Seconds() * peers
			after := total(nodes)
			b.ReportMetric(float64(after-before)/seconds, "B/s/peer")
			b.ReportMetric(100*(cputime.Used()-cpu).Seconds()/seconds, "%cpu/peer")
			b.ReportMetric(float64(runtime.NumGoroutine())/peers, "goroutines/peer")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// total returns the bytes that all nodes sent.
func total(nodes []*Node) (bytes int64) {
	for _, n := range nodes {
		s := n.Stats()
		bytes += s.Out.All()
	}
	return bytes
}
