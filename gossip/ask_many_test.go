package gossip

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
	"github.com/summarycache/summarycache/sim/cputime"
)

// TestManyLightPeers runs many peers, of which eight keep digests, with 1 % loss, while every peer replaces objects. It checks
// what a light peer receives and keeps, and what it finds, also after six of the eight were killed.
func TestManyLightPeers(t *testing.T) {
	n, full, objects := *thousand, 8, 400
	if testing.Short() {
		t.Skip("many peers: TestLightPeersAsk has a few, and the same goroutines")
	}
	synctest.Test(t, func(t *testing.T) {
		c, nodes := lightCluster(t, n, full, objects, nil)
		defer c.close()
		c.net.SetConditions(memnet.Conditions{Loss: 0.01, Latency: 300 * time.Microsecond, Jitter: 200 * time.Microsecond})
		first := make([]int, n) // the oldest object of each
		change := func(seconds int) {
			for range seconds {
				for i, node := range nodes {
					node.Holdings().Add(objectOf(i, first[i]+objects))
					node.Holdings().Remove(objectOf(i, first[i]))
					first[i]++
				}
				time.Sleep(time.Second)
			}
		}
		change(60)
		before := make([]Stats, n)
		for i, node := range nodes {
			before[i] = node.Stats()
		}
		const seconds = 60
		change(seconds)
		rates := func(i int) (in, out, members int64, held int64) {
			s := nodes[i].Stats()
			return (s.In.Digests() - before[i].In.Digests()) / seconds, (s.Out.Digests() - before[i].Out.Digests()) / seconds,
				(s.In.Membership - before[i].In.Membership) / seconds, s.ReplicaBytes + s.IndexBytes
		}
		in, out, members, held := rates(n - 1)
		fullIn, fullOut, fullMembers, fullHeld := rates(0)
		t.Logf("%d peers, %d full, %d objects, one replaced a second: a light one receives %d and sends %d B/s, membership %d B/s, holds %d B; a full one %d, %d, %d B/s and %d B",
			n, full, objects, in, out, members, held, fullIn, fullOut, fullMembers, fullHeld)
		if in > fullIn/10 || held > fullHeld/100 {
			t.Errorf("a light peer receives %d B/s and holds %d B, a full one %d and %d", in, held, fullIn, fullHeld)
		}
		if agreed := nodes[n-1].Stats().Exchange.Agreed - before[n-1].Exchange.Agreed; agreed < seconds/2 {
			t.Errorf("in %d s, %d sums equalled that of a light peer", seconds, agreed)
		}
		look := func(when string, most int) {
			t.Helper()
			const looks = 4000
			before, missed := nodes[n-1].Stats().Questions.Asked, 0
			for range looks {
				i, j := full+rand.IntN(n-full), full+rand.IntN(n-full)
				if i != j && !found(nodes[i], j, first[j]+rand.IntN(objects), nodes[j].Name()) {
					missed++
				}
			}
			t.Logf("%s: %d of %d objects were not found, %d questions by one peer", when, missed, looks, nodes[n-1].Stats().Questions.Asked-before)
			if missed > most {
				t.Errorf("%s: %d of %d objects were not found", when, missed, looks)
			}
		}
		time.Sleep(5 * time.Second)
		look("before deaths", 10) // both questions of a lookup are lost, or their replies, once in 2500
		for _, node := range nodes[:6] {
			c.kill(node.Name())
		}
		for i := full; i < n; i++ { // each finds out
			for range 3 {
				found(nodes[i], full, 0, "")
			}
		}
		look("with six full peers killed", 60)
		time.Sleep(20 * time.Second)
		look("when their deaths are known", 10)
		for _, node := range nodes[full:] {
			if s := node.Stats(); s.Replicas > 0 || s.Exchange.Fetches > 0 {
				t.Fatalf("%s is light, fetched %d times and holds %d digests", node.Name(), s.Exchange.Fetches, s.Replicas)
			}
		}
	})
}

// BenchmarkAsk measures a question to a full peer on loopback, with real sockets: its time and the processor time of both ends.
func BenchmarkAsk(b *testing.B) {
	nodes := []*Node{realNode(b, "full", 1000)}
	for i := range 2 {
		cfg := Config{Name: fmt.Sprint("light", i), Bind: "127.0.0.1:0", Secret: testSecret, Service: "127.0.0.1:1", Join: []string{nodes[0].Addr()},
			Objects: 1000, Advanced: Advanced{Light: true}, Logger: testLog()}
		n, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { n.Close() })
		if err := n.Join(b.Context()); err != nil {
			b.Fatal(err)
		}
		nodes = append(nodes, n)
		for j := range 1000 {
			n.Holdings().Add(objectOf(i, j))
		}
	}
	eventually(b, time.Minute, func() error {
		if !found(nodes[1], 1, 7, "light1") {
			return fmt.Errorf("not found yet")
		}
		return nil
	})
	i, cpu := 0, cputime.Used()
	for b.Loop() {
		if i++; !found(nodes[1], 1, i%1000, "light1") {
			b.Fatal("an object was not found")
		}
	}
	b.ReportMetric(float64((cputime.Used()-cpu).Nanoseconds())/float64(i), "cpu-ns/op")
}
