package gossip

import (
	"fmt"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// BenchmarkLag measures the time from a change at one of three peers on loopback
// until the other two can find it, the interval between publications included.
func BenchmarkLag(b *testing.B) {
	for _, keys := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			nodes := []*Node{realNode(b, "p1", keys)}
			for i := 2; i <= 3; i++ {
				nodes = append(nodes, realNode(b, fmt.Sprintf("p%d", i), 0, nodes[0].Addr()))
			}
			for _, n := range nodes {
				eventually(b, time.Minute, replicas(n, 2))
			}
			next, worst := keys, time.Duration(0)
			var sum time.Duration
			for b.Loop() {
				last := digest.Key(0)
				for range max(1, keys/1000) {
					last = key("p1", next)
					nodes[0].cfg.Holdings.Keys().Add(last)
					nodes[0].cfg.Holdings.Keys().Remove(key("p1", next-keys))
					next++
				}
				took := eventually(b, time.Minute, func() error {
					if !holders(nodes[1], last)["p1"] || !holders(nodes[2], last)["p1"] {
						return fmt.Errorf("not there yet")
					}
					return nil
				})
				sum += took
				worst = max(worst, took)
			}
			b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms/change")
			b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
		})
	}
}
