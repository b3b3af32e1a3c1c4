package gossip

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// String names a kind as JSON does.
func (k kind) String() string {
	return [...]string{"advert", "delta", "snapshot", "request", "vector", "greeting", "invalidation", "membership", "sealing"}[k]
}

func kindsOf(t Traffic) byKind {
	return byKind{t.Adverts, t.Deltas, t.Snapshots, t.Requests, t.Vectors, t.Greetings, t.Invalidations, t.Membership, t.Sealing}
}

// talk makes three peers on loopback, with real sockets, send messages of all kinds that their counters
// distinguish. Then it calls look, and returns the counters of just before.
func talk(t *testing.T, network Network, subnet string, secret []byte, look func()) (before, after byKind) {
	t.Helper()
	var nodes []*Node
	start := func(i, keys int) {
		name := fmt.Sprintf("p%d", i)
		f := newFilter(t, secret)
		for k := range keys {
			f.Add(key(name, k))
		}
		cfg := Config{
			Name: name, Secret: secret, Bind: fmt.Sprintf("%s.%d:0", subnet, i), Service: "127.0.0.1:1",
			Holdings: NewHoldings(f), Advanced: Advanced{Network: network, Publish: exchange.Publishing{MinInterval: 20 * time.Millisecond}}, Logger: testLog(),
			detect: detection{probe: 50 * time.Millisecond, timeout: 45 * time.Millisecond, suspicion: 100},
		}
		if i > 1 {
			cfg.Join = []string{nodes[0].Addr()}
		}
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		nodes = append(nodes, n)
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sum := func() (sum byKind) {
		for _, n := range nodes {
			for k, b := range kindsOf(n.Stats().Out) {
				sum[k] += b
			}
		}
		return sum
	}
	for i := 1; i <= 3; i++ {
		start(i, 2000)
	}
	eventually(t, 30*time.Second, allInStep(nodes))
	// Changes continue, some of them too large for a datagram, until each kind has so many bytes that a
	// message or two at the end do not matter.
	next := 2000
	eventually(t, 60*time.Second, func() error {
		more := 1
		if next%100 == 0 {
			more = 1001
		}
		for range more {
			for _, n := range nodes {
				n.cfg.Holdings.Keys().Add(key(n.Name(), next))
			}
			next++
		}
		if err := nodes[next%3].Invalidate(t.Context(), invalidation.Target{Kind: invalidation.Identity, Name: "GET http://example.com/"}); err != nil {
			return err
		}
		for k, n := range sum() {
			if kind(k) != kindSealing && n < 500 {
				return fmt.Errorf("%d bytes of %s in all", n, kind(k))
			}
		}
		return nil
	})
	eventually(t, 30*time.Second, allInStep(nodes))
	before = sum()
	look()
	return before, sum()
}

// compareCounters compares the counters of nodes before and after a moment with the bytes seen on the
// wire at that moment.
func compareCounters(t *testing.T, before, after, seen byKind) {
	t.Helper()
	for k, n := range seen {
		compareCounter(t, kind(k).String(), before[k], after[k], n)
	}
}

func compareCounter(t *testing.T, what string, before, after, seen int64) {
	t.Helper()
	t.Logf("%-10s %8d bytes on the wire, %8d to %8d by the nodes' counters", what, seen, before, after)
	if float64(before) > 1.02*float64(seen) || float64(after) < 0.98*float64(seen) {
		t.Errorf("%s: %d bytes on the wire, %d to %d by the nodes' counters, want them within 2 %%", what, seen, before, after)
	}
}

// TestCountersAgainstSockets compares the counters of nodes with the bytes written to real sockets.
func TestCountersAgainstSockets(t *testing.T) {
	var seen byKind
	tap := new(wiretap)
	before, after := talk(t, tappedNetwork{tap, new(systemNetwork)}, "127.0.0", nil, func() { seen, _ = tap.read() })
	compareCounters(t, before, after, seen)
}

// A muteNetwork is one whose packets cannot be sent while fails is set.
type muteNetwork struct {
	Network
	fails *atomic.Bool
}

func (h muteNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := h.Network.ListenPacket(addr)
	return mutePackets{c, h.fails}, err
}

type mutePackets struct {
	net.PacketConn
	fails *atomic.Bool
}

func (c mutePackets) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.fails.Load() {
		return 0, errors.New("no buffer space available")
	}
	return c.PacketConn.WriteTo(b, to)
}

// TestFailedSendsAreNotCounted makes a peer publish while none of its packets can be sent.
func TestFailedSendsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(2)
		var fails atomic.Bool
		cfg := c.config("p3", "10.0.0.3")
		cfg.Network, cfg.Join = muteNetwork{cfg.Network, &fails}, []string{"10.0.0.1:7946"}
		n := c.start(cfg)
		change := func(first int) (published int64, before, after Stats) {
			within(t, settling, c.inStep)
			before = n.Stats()
			for i := range 20 {
				n.Holdings().Keys().Filter().Add(key("p3", first+i))
			}
			time.Sleep(100 * time.Millisecond)
			after = n.Stats()
			return after.Exchange.Published - before.Exchange.Published, before, after
		}
		published, before, after := change(0)
		if published == 0 || after.Exchange.AdvertsSent == before.Exchange.AdvertsSent || after.Out.Digests() == before.Out.Digests() {
			t.Fatalf("%d published, and %+v, then %+v: want more sent", published, before, after)
		}
		fails.Store(true)
		published, before, after = change(20)
		fails.Store(false)
		if e, was := after.Exchange, before.Exchange; published == 0 || e.AdvertsSent != was.AdvertsSent || e.CarriedSent != was.CarriedSent || e.CarriedBytesSent != was.CarriedBytesSent {
			t.Errorf("%d published, and %+v, then %+v: want nothing counted as sent", published, was, e)
		}
		if after.Out.Adverts != before.Out.Adverts {
			t.Errorf("%v, then %v: want nothing counted as sent", before.Out, after.Out)
		}
	})
}

// Traffic is an object of names in JSON, and kinds that a later release adds are no mistake.
func TestTrafficInJSON(t *testing.T) {
	want := Traffic{Deltas: 3, Sealing: 1 << 60}
	text, err := json.Marshal(want)
	if err != nil || !strings.Contains(string(text), `"delta":3`) {
		t.Fatalf("%s, %v", text, err)
	}
	var got Traffic
	if err := json.Unmarshal([]byte(strings.Replace(string(text), "{", `{"later":7,`, 1)), &got); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
}
