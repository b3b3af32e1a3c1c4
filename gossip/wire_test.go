package gossip

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
)

var idlePeers = flag.String("wire.idle", "12", "numbers of peers that TestIdleBytes has do nothing")

// icpBytes is what two Squids with ICP took for [wireWorkload], payload, by tcpdump.
const icpBytes = 549_718

// wireWorkload is requests by a Zipf law of 0.9, dealt to peers at random.
type wireWorkload struct {
	requests, objects int
	rate              float64 // a second, in all
}

var theWorkload = wireWorkload{requests: 20_000, objects: 5_000}

// A wireRun is what came of a workload.
type wireRun struct {
	traffic Traffic // by the wiretap
	headers int64
	seconds float64
	origin  int // fetches
	floor   int
	remote  int
}

func (r wireRun) overFloor() float64 { return float64(r.origin)/float64(r.floor) - 1 }

// run has two peers answer the workload, each with a cache that evicts nothing. What
// the origin or a sibling sends is there at once.
func (wl wireWorkload) run(t *testing.T, secret []byte) (r wireRun) {
	c, tap := newCluster(t), new(wiretap)
	defer c.close()
	nodes := c.tapped(tap, 2, secret)
	time.Sleep(20 * time.Second)
	before, headers := tap.read()
	was := c.counted()
	rng := rand.New(rand.NewPCG(17, 17))
	draw := zipf(rng, wl.objects, 0.9)
	held := []map[int]bool{{}, {}}
	anywhere := map[int]bool{}
	start := time.Now()
	for range wl.requests {
		time.Sleep(time.Duration(rng.ExpFloat64() / wl.rate * float64(time.Second)))
		at, object := rng.IntN(2), draw()
		if held[at][object] {
			continue
		}
		name := fmt.Sprint("/", object)
		if candidates := nodes[at].Candidates(nil, name); len(candidates) > 0 && held[1-at][object] {
			nodes[at].ReportHit(candidates[0].Peer)
			r.remote++
		} else {
			r.origin++
		}
		if !anywhere[object] {
			r.floor++
		}
		anywhere[object], held[at][object] = true, true
		nodes[at].Holdings().Add(name)
	}
	r.seconds = time.Since(start).Seconds()
	synctest.Wait()
	after, more := tap.read()
	now := c.counted()
	r.headers = more - headers
	for k := range after {
		counted := now[k] - was[k]
		r.traffic[k] = after[k] - before[k]
		if secret != nil {
			r.traffic[k] = counted // the wiretap sees nothing
		}
		if secret == nil {
			compareCounter(t, TrafficKind(k).String(), counted, r.traffic[k])
		}
	}
	return r
}

// zipf draws numbers below n by a Zipf law.
func zipf(rng *rand.Rand, n int, exponent float64) func() int {
	sums := make([]float64, n)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -exponent)
		sums[i] = sum
	}
	return func() int {
		i, _ := slices.BinarySearch(sums, rng.Float64()*sum)
		return min(i, n-1)
	}
}

// tapped starts n peers, as cmd/peer does with its defaults, on hosts whose wires are
// tapped.
func (c *cluster) tapped(tap *wiretap, n int, secret []byte) (nodes []*Node) {
	for i := range n {
		ip := fmt.Sprintf("10.0.%d.%d", i/200, 1+i%200)
		g, err := digest.GeometryFor(32768, 0.001)
		if err != nil {
			c.t.Fatal(err)
		}
		g.Seed = digest.SeedFrom(secret)
		filter, err := digest.NewCountingFilter(g, 1)
		if err != nil {
			c.t.Fatal(err)
		}
		cfg := Config{
			Name: fmt.Sprintf("peer-%d", i+1), Bind: ip + ":7946", Service: ip + ":8080", Secret: secret,
			Holdings: NewHoldings(filter), Network: tappedNetwork{tap, c.net.Host(ip)}, Logger: testLog(),
		}
		if i > 0 {
			cfg.Join = []string{"10.0.0.1:7946"}
		}
		nodes = append(nodes, c.start(cfg))
	}
	return nodes
}

// counted is what all nodes say that they sent.
func (c *cluster) counted() (sum Traffic) {
	for _, n := range c.nodes {
		for k, b := range n.Stats().Out {
			sum[k] += b
		}
	}
	return sum
}

// TestBytesOnTheWire has two peers answer one workload at three rates, and once under a
// secret, and says what that takes of what ICP did.
func TestBytesOnTheWire(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "| requests/s | ")
	for k := range TrafficKinds {
		fmt.Fprintf(&out, "%s | ", TrafficKind(k))
	}
	fmt.Fprintln(&out, "digests of ICP's | all of ICP's | headers | origin fetches over the floor % |")
	for _, tc := range []struct {
		rate               float64
		secret             []byte
		digests, all, over float64 // at most
	}{
		{13.3, nil, 0.08, 0.40, 0.006},
		{300, nil, 0.06, 0.08, 0.006},
		{3000, nil, 0.04, 0.05, 0.03}, // of 7 s in all: what is learnt of the requests comes late
		{13.3, testSecret, 0.08, 0.75, 0.006},
	} {
		synctest.Test(t, func(t *testing.T) {
			wl := theWorkload
			wl.rate = tc.rate
			r := wl.run(t, tc.secret)
			digests, all := float64(r.traffic.Digests())/icpBytes, float64(r.traffic.All())/icpBytes
			fmt.Fprintf(&out, "| %g | ", tc.rate)
			for _, n := range r.traffic {
				fmt.Fprintf(&out, "%d | ", n)
			}
			fmt.Fprintf(&out, "%.3f | %.3f | %d | %.2f |\n", digests, all, r.headers, 100*r.overFloor())
			if digests > tc.digests || all > tc.all || r.overFloor() > tc.over {
				t.Errorf("at %g requests/s: %.3f of ICP's bytes for digests, %.3f for everything, %.2f %% over the floor, want at most %g, %g, %.2f %%",
					tc.rate, digests, all, 100*r.overFloor(), tc.digests, tc.all, 100*tc.over)
			}
		})
	}
	t.Logf("bytes of %d requests over %d objects\n%s", theWorkload.requests, theWorkload.objects, out.String())
}

// TestIdleBytes has clusters do nothing, and says what that takes.
func TestIdleBytes(t *testing.T) {
	for _, peers := range strings.Split(*idlePeers, ",") {
		peers, err := strconv.Atoi(peers)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			c, tap := newCluster(t), new(wiretap)
			defer c.close()
			for i, n := range c.tapped(tap, peers, nil) {
				n.Holdings().Add(fmt.Sprint("/", i))
			}
			time.Sleep(2 * time.Minute)
			const minutes = 10
			before, headers := tap.read()
			time.Sleep(minutes * time.Minute)
			after, more := tap.read()
			var each Traffic // both ways
			seconds := minutes * 60.0
			for k := range each {
				each[k] = int64(2 * float64(after[k]-before[k]) / seconds / float64(peers))
			}
			all := each.All() + int64(2*float64(more-headers)/seconds/float64(peers))
			t.Logf("%d idle peers: %d B/s a peer with headers, in and out; without: %v", peers, all, each)
			most := int64(450)
			if peers > 60 {
				most = 500
			}
			if all > most {
				t.Errorf("%d idle peers: %d B/s a peer, want at most %d", peers, all, most)
			}
		})
	}
}
