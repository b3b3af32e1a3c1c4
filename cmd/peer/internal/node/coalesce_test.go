package node

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

// Clients of eight peers, which are half a millisecond from each other and from the origin,
// request objects that no peer stores, all at once: each object is fetched about once. Then
// each peer has misses of its own, which soon cost no messages.
func TestCrowdAtOnce(t *testing.T) {
	const peers, clients, objects, alone, think = 8, 64, 20, 400, 200 * time.Millisecond
	sizes := make(map[string]int64)
	for i := range objects {
		sizes[fmt.Sprint("/cold/", i)] = 20_000
	}
	for i := range peers * alone {
		sizes[fmt.Sprint("/own/", i)] = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual(t, 0, sizes)
		defer v.stop()
		v.origin.Fetched = func(*http.Request) { pause(think) }
		v.net.SetConditions(memnet.Conditions{Latency: 500 * time.Microsecond})
		for i := range peers {
			v.start(i, t.TempDir())
		}
		pause(5 * time.Second)
		var mu sync.Mutex
		var waited, longest time.Duration
		var all sync.WaitGroup
		for i := range objects {
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
		lookups := func() (asked, shared uint64) {
			for _, n := range v.nodes {
				c := n.Status().Traffic
				asked, shared = asked+c.LookupsSent, shared+c.FetchersShared
			}
			return asked, shared
		}
		fetched := v.origin.Requests()
		asked, shared := lookups()
		t.Logf("%d objects, %d clients each at %d peers: %d origin fetches; clients waited %v, %v at most; owners asked %d times, %d shared",
			objects, clients, peers, fetched, waited/(clients*objects), longest, asked, shared)
		if fetched > objects*11/10 {
			t.Errorf("%d origin fetches of %d objects", fetched, objects)
		}
		if testing.Short() {
			return // the same requests 3,200 times, one by one: nothing more for the race detector
		}

		var ownLookups [2]uint64
		for half := range ownLookups {
			before, _ := lookups()
			for peer := range peers {
				all.Go(func() {
					for i := half * alone / 2; i < (half+1)*alone/2; i++ {
						if err := v.getInto(peer, fmt.Sprint("/own/", peer*alone+i), make([]byte, 2000)); err != nil {
							t.Error(err)
						}
						pause(50 * time.Millisecond)
					}
				})
			}
			all.Wait()
			after, _ := lookups()
			ownLookups[half] = after - before
		}
		t.Logf("%d misses that nobody else has: owners asked %d times in the first half, %d in the second", peers*alone, ownLookups[0], ownLookups[1])
		if most := uint64(peers*alone/2) / 8; ownLookups[1] > most { // 5 to 178 of 1,600, as the names of the objects happen to be
			t.Errorf("owners were asked %d times, at most %d expected", ownLookups[1], most)
		}
	})
}
