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
		meta := delegate{c.nodes["p1"]}.NodeMeta(0)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range 8_000 {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)}), 7946)
			alive := claim{name: fmt.Sprintf("nobody%d", i), incarnation: 1, addr: addr, meta: meta, versions: []byte{1, 5, 2, 0, 0, 0}}
			for to := range c.nodes {
				packet(aliveMessage(alive), to)
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
		for name, n := range c.nodes {
			if w := n.transport.screen; len(w.waiting) > n.cfg.Limits.Members {
				t.Errorf("%d wait at %s", len(w.waiting), name)
			}
		}
		if got := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); got > 64<<20 {
			t.Errorf("the flood took %d MiB", got>>20)
		}
		time.Sleep(newcomerProbes*newcomerProbe + time.Second)
		synctest.Wait()
		for name, n := range c.nodes {
			w := n.transport.screen
			if len(w.waiting)+len(w.asked)+len(w.bySource)+len(w.listed) != 0 || n.memberlist.NumMembers() != 4 || len(*n.members.Load()) != 3 {
				t.Errorf("three seconds later %s has %d waiting, %d members and %d others", name, len(w.waiting), n.memberlist.NumMembers(), len(*n.members.Load()))
			}
		}
		if gone.Load() != 0 {
			t.Errorf("a peer was down %d times", gone.Load())
		}
	})
}

// TestNewcomersShare: when all places are taken, a source with few of them gets more from one with most;
// a source that has its share does not.
func TestNewcomersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testScreen(100)
		s.entered = true
		say := func(from byte, i int) {
			s.wait(claim{name: fmt.Sprintf("p%d", i), addr: netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.1:7946", from))}, netip.AddrFrom4([4]byte{10, 0, 0, from}), false)
		}
		for i := range 1000 {
			say(1, i)
		}
		for i := range 1000 {
			say(2, i)
		}
		w := s
		if few, all := w.bySource[netip.MustParseAddr("10.0.0.2")], len(w.waiting); all != 100 || few < 33 || few > 50 {
			t.Errorf("%d of %d places are the second source's", few, all)
		}
		time.Sleep(newcomerProbes*newcomerProbe + time.Millisecond)
		synctest.Wait()
		if len(w.waiting) != 0 {
			t.Errorf("%d wait for ever", len(w.waiting))
		}
	})
}

// TestNewcomerAnswersLate: a newcomer becomes a member although packets to it are lost, or take a second.
// An answer with a wrongly guessed number, or with other metadata, has no effect.
func TestNewcomerAnswersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testScreen(3)
		s.entered = true
		probes, admitted := 0, 0
		s.probe = func([]byte, netip.AddrPort) { probes++ }
		s.admit = func([]byte) { admitted++ }
		said := claim{name: "p1", addr: netip.MustParseAddrPort("10.0.0.1:7946"), meta: []byte("metadata")}
		answer := func(meta string) []byte {
			h := hashOfMeta("p1", []byte(meta))
			return append(make([]byte, sumBytes), h[:]...)
		}
		number := func() (number uint32) {
			for number = range s.asked {
			}
			return number
		}
		s.wait(said, netip.Addr{}, false)
		s.answered(number()+1, answer("metadata"))
		time.Sleep((newcomerProbes-1)*newcomerProbe + newcomerProbe/2)
		synctest.Wait()
		if probes != newcomerProbes || admitted != 0 || s.confirmed(said) {
			t.Errorf("%d probes, %d let in", probes, admitted)
		}
		for _, other := range [][]byte{answer("other"), answer("metadata")[:sumBytes], nil} {
			s.answered(number(), other)
			s.wait(said, netip.Addr{}, false)
		}
		if admitted != 0 || s.confirmed(said) {
			t.Errorf("one that answered with other metadata was let in %d times", admitted)
		}
		last := number()
		s.answered(last, answer("metadata"))
		s.answered(last, answer("metadata"))
		if admitted != 1 || !s.confirmed(said) {
			t.Errorf("one that answered the last probe was let in %d times", admitted)
		}
		said.meta = []byte("other")
		if s.confirmed(said) {
			t.Error("other metadata than it answered with are believed")
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
				alive := claim{name: "p2", incarnation: 1 << 20, addr: evil.advertise, meta: delegate{evil}.NodeMeta(0), versions: []byte{1, 5, 2, 0, 0, 0}}
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
						from.WriteTo(aliveMessage(alive), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.4:7946")))
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
