package node

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// Clients ask eight peers, half a millisecond from each other and from the origin,
// for objects that nobody holds, all at once. The origin needs 200 ms for each.
func TestCrowdAtOnce(t *testing.T) {
	const peers, clients, objects, think = 8, 64, 20, 200 * time.Millisecond
	sizes := make(map[string]int64)
	for i := range objects {
		sizes[fmt.Sprint("/cold/", i)] = 20_000
	}
	for _, wait := range []time.Duration{0, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			v := newVirtual(t, 0, sizes)
			defer v.stop()
			v.tune = func(c *config.Config) { c.CollapseWait = wait }
			v.origin.Fetched = func(*http.Request) { pause(think) }
			v.net.SetConditions(memnet.Conditions{Latency: 500 * time.Microsecond})
			for i := range peers {
				v.start(i, t.TempDir())
			}
			pause(5 * time.Second)
			var mu sync.Mutex
			var waited, longest time.Duration
			for i := range objects {
				var all sync.WaitGroup
				for j := range clients {
					all.Go(func() {
						pause(time.Duration(j*j%17) * time.Millisecond)
						start := time.Now()
						if err := v.getInto(j%peers, fmt.Sprint("/cold/", i), make([]byte, 64<<10)); err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						waited += time.Since(start)
						longest = max(longest, time.Since(start))
					})
				}
				all.Wait()
				pause(5 * time.Second)
			}
			fetched := v.origin.Tally().Requests
			var asked, shared uint64
			for _, n := range v.nodes {
				c := n.Status().Traffic
				asked, shared = asked+c.HomesAsked, shared+c.FetchersShared
			}
			t.Logf("wait %v: %d objects, %d clients each at %d peers: %d origin fetches; clients waited %v, %v at most; homes asked %d times, %d shared",
				wait, objects, clients, peers, fetched, waited/(clients*objects), longest, asked, shared)
			switch {
			case wait == 0 && fetched != objects*peers:
				t.Errorf("%d origin fetches of peers that do not know of each other", fetched)
			case wait > 0 && fetched > objects*11/10:
				t.Errorf("%d origin fetches of %d objects", fetched, objects)
			}
		})
	}
}
