package gossip

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// TestInventedMembers: a stranger announces thousands of live peers that do not exist, by packets and by
// lists of members. None becomes a member, no real peer is excluded, they take little memory, and no
// state is left three seconds later.
func TestInventedMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, gone := plainCluster(t)
		defer c.close()
		packet, end := stranger(c)
		defer end()
		meta := delegate{c.nodes["p1"].group}.NodeMeta(0)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range 8_000 {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 7946)
			alive := guard.Claim{Name: fmt.Sprintf("nobody%d", i), Incarnation: 1, Addr: addr, Meta: meta, Versions: []byte{1, 5, 2, 0, 0, 0}}
			for to := range c.nodes {
				packet(guard.AliveMessage(alive), to)
				if i%100 == 0 {
					conn, err := c.net.Host("10.6.6.6").Dial(t.Context(), c.nodes[to].Addr())
					if err != nil {
						t.Fatal(err)
					}
					conn.Write(listing(fmt.Sprintf("listed%d", i), addr.Addr().AsSlice(), 1, memberlist.StateAlive))
					time.AfterFunc(time.Second, func() { conn.Close() })
				}
			}
			time.Sleep(200 * time.Microsecond)
			if i == 6_000 {
				cfg := c.config("p4", "10.0.0.4")
				cfg.Secret, cfg.Holdings = nil, NewHoldings(newFilter(t, nil))
				cfg.Join = []string{"10.0.0.1:7946"}
				c.start(cfg)
			}
		}
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("8,000 invented members took %d KiB of three peers", (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>10)
		if err := c.inStep(); err != nil {
			t.Errorf("the flood keeps a newcomer out: %v", err)
		}
		if got := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); got > 64<<20 {
			t.Errorf("the flood took %d MiB", got>>20)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for name, n := range c.nodes {
			if n.memberlist.NumMembers() != 4 || len(*n.members.Load()) != 3 {
				t.Errorf("three seconds later %s has %d members and %d others", name, n.memberlist.NumMembers(), len(*n.members.Load()))
			}
		}
		if gone.Load() != 0 {
			t.Errorf("a peer was down %d times", gone.Load())
		}
	})
}

// TestNewcomersBelieveTheirSeed: an impostor answers by the name of a live peer, and announces itself to
// a newcomer even before that starts. The newcomer believes the peer through which it joins.
func TestNewcomersBelieveTheirSeed(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := plainCluster(t)
			defer c.close()
			config := func(name, ip string) Config {
				cfg := c.config(name, ip)
				cfg.Secret, cfg.Holdings = nil, NewHoldings(newFilter(t, nil))
				return cfg
			}
			evil, err := New(config("p2", "10.0.0.99"))
			if err != nil {
				t.Fatal(err)
			}
			defer evil.Close()
			from, err := c.net.Host("10.6.6.6").ListenPacket(":1")
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				alive := guard.Claim{Name: "p2", Incarnation: 1 << 20, Addr: evil.advertise, Meta: delegate{evil.group}.NodeMeta(0), Versions: []byte{1, 5, 2, 0, 0, 0}}
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
						from.WriteTo(guard.AliveMessage(alive), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.4:7946")))
					}
				}
			}()
			time.Sleep(time.Second)
			if lossy { // the first answers of the true one, and its own word, are late
				c.net.SetLink("10.0.0.2", "10.0.0.4", memnet.Conditions{Latency: 700 * time.Millisecond})
			}
			cfg := config("p4", "10.0.0.4")
			cfg.Join = []string{"10.0.0.1:7946"}
			p4, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer p4.Close()
			time.Sleep(100 * time.Millisecond) // between the two
			if err := p4.Join(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			for _, m := range p4.Members() {
				if want := c.nodes[m.Name]; want == nil || m.Addr != want.advertise.String() || !m.Alive {
					t.Errorf("it has %s at %s, alive %v", m.Name, m.Addr, m.Alive)
				}
			}
			if got := len(p4.Members()); got != 3 {
				t.Errorf("it knows %d members, want 3", got)
			}
		})
	}
}
