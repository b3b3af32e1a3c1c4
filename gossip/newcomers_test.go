package gossip

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// TestInventedMembers: whoever speaks of thousands of live peers that there are not, by
// packets and by lists of members, has none of them become a member of anybody's, keeps
// nobody out, takes little memory, and leaves nothing behind three seconds after it stops.
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
				packet(appendAlive(nil, alive), to)
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
			if w := &n.transport.screen.newcomers; len(w.waiting) > n.cfg.Limits.Members {
				t.Errorf("%d wait at %s", len(w.waiting), name)
			}
		}
		if got := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); got > 64<<20 {
			t.Errorf("the flood took %d MiB", got>>20)
		}
		time.Sleep(newcomerProbes*newcomerProbe + time.Second)
		synctest.Wait()
		for name, n := range c.nodes {
			w := &n.transport.screen.newcomers
			if len(w.waiting)+len(w.asked)+len(w.bySource) != 0 || n.memberlist.NumMembers() != 4 || len(*n.members.Load()) != 3 {
				t.Errorf("three seconds later %s has %d waiting, %d members and %d others", name, len(w.waiting), n.memberlist.NumMembers(), len(*n.members.Load()))
			}
		}
		if gone.Load() != 0 {
			t.Errorf("%d times a peer was gone", gone.Load())
		}
	})
}

// TestNewcomersShare: where all places are taken, a source that has few of them gets more
// from one that has most; one that has its share does not.
func TestNewcomersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testScreen(100)
		say := func(from byte, i int) {
			s.wait(claim{name: fmt.Sprintf("p%d", i), addr: netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.1:7946", from))}, netip.AddrFrom4([4]byte{10, 0, 0, from}))
		}
		for i := range 1000 {
			say(1, i)
		}
		for i := range 1000 {
			say(2, i)
		}
		w := &s.newcomers
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

// TestNewcomerAnswersLate: packets to a newcomer are lost, or take a second, and it gets
// in; a probe whose number somebody guesses wrong lets nobody in.
func TestNewcomerAnswersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testScreen(3)
		probes, admitted := 0, 0
		s.newcomers.send = func([]byte, netip.AddrPort) { probes++ }
		s.newcomers.admit = func([]byte) { admitted++ }
		s.wait(claim{name: "p1", addr: netip.MustParseAddrPort("10.0.0.1:7946")}, netip.Addr{})
		var number uint32
		for number = range s.newcomers.asked {
		}
		s.answered(number + 1)
		time.Sleep((newcomerProbes-1)*newcomerProbe + newcomerProbe/2)
		synctest.Wait()
		if probes != newcomerProbes || admitted != 0 || s.known("p1") {
			t.Errorf("%d probes, %d let in", probes, admitted)
		}
		s.answered(number)
		s.answered(number)
		if admitted != 1 || !s.known("p1") {
			t.Errorf("one that answered the last probe was let in %d times", admitted)
		}
	})
}
