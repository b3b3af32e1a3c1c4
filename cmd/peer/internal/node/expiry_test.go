package node

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/sim/workload"
)

// Copies of a response go stale at all peers at the same moment: then no peer asks another for one.
func TestCopiesThatExpireTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("measures a rate; with the race detector, TestTwentyPeers has requests at many peers")
	}
	synctest.Test(t, func(t *testing.T) {
		const peers, rate = 6, 30
		trace := workload.Synthetic(workload.Model{Requests: 60 * rate, Objects: 100, Exponent: 0.9, Seed: 3})
		v := newVirtual(t, peers, trace.Sizes)
		defer v.stop()
		v.origin.Fresh = 20 * time.Second
		pause(3 * time.Second)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, r := range trace.Requests {
			pause(time.Duration(rng.ExpFloat64() * float64(time.Second) / rate))
			if err := v.get(rng.IntN(peers), r.Key); err != nil {
				t.Fatal(err)
			}
		}
		var asked, falseHits, origin uint64
		for _, n := range v.nodes {
			c := n.Status().Traffic
			asked, falseHits, origin = asked+c.SiblingRequests, falseHits+c.FalseHits, origin+c.OriginRequests
		}
		t.Logf("%d questions to siblings, %d false hits, %d requests to the origin", asked, falseHits, origin)
		if falseHits*100 > asked {
			t.Errorf("%d false hits of %d questions, want at most 1 %%", falseHits, asked)
		}
	})
}
