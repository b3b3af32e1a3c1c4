package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// tapNetwork records the first packets that reach a host, as sent.
type tapNetwork struct {
	Network
	tap *tap
}

type tap struct {
	net.PacketConn
	mu      sync.Mutex
	packets [][]byte
}

func (n tapNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	var err error
	n.tap.PacketConn, err = n.Network.ListenPacket(addr)
	return n.tap, err
}

func (p *tap) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := p.PacketConn.ReadFrom(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && len(p.packets) < 500 {
		p.packets = append(p.packets, bytes.Clone(b[:n]))
	}
	return n, from, err
}

// TestHostileMember: a member with the secret attacks two others in all ways at once: it claims that one
// is dead, has left or is at another address, invents members, announces lists that it does not send,
// and replays packets. They stay members of each other at their addresses, and their replicas stay
// right; a newcomer can join, and no other peer gets their names. TestLiarsAreNamedAndHarmless has
// false digests.
func TestHostileMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var gone atomic.Int64
		start := func(name, ip string) *Node {
			cfg := c.config(name, ip)
			if name != "p1" {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			cfg.Hooks.PeerDown = func(m Member) {
				if slices.Contains([]string{"p1", "p2", "p3"}, m.Name) {
					gone.Add(1)
				}
			}
			return c.start(cfg)
		}
		p1, p2 := start("p1", "10.0.0.1"), start("p2", "10.0.0.2")
		heard := new(tap)
		cfg := c.config("hostile", "10.0.0.66")
		cfg.Join, cfg.Network = []string{"10.0.0.1:7946"}, tapNetwork{cfg.Network, heard}
		hostile, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer hostile.Close()
		if err := hostile.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		within(t, settling, c.inStep)
		time.Sleep(5 * time.Second) // for some packets to repeat

		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		meta, versions := delegate{p2.group}.NodeMeta(0), []byte{1, 5, 2, 0, 0, 0}
		send := func(b []byte, to *Node) {
			if err := hostile.transport.write(b, to.advertise); err != nil {
				t.Error(err)
			}
		}
		stream := func(b []byte, to *Node) {
			conn, err := hostile.dial(t.Context(), to.Addr())
			if err != nil {
				return // it has as many as it may
			}
			conn.Write(b)
			time.AfterFunc(time.Second, func() { conn.Close() })
		}
		for round := range 50 {
			for _, at := range []struct{ to, of *Node }{{p1, p2}, {p2, p1}, {p1, p1}, {p2, p2}} {
				name, addr := at.of.cfg.Name, at.of.advertise.Addr().AsSlice()
				for _, incarnation := range []uint32{1, uint32(round), 1024, guard.IncarnationLast, math.MaxInt32, math.MaxUint32} {
					for _, by := range []string{"hostile", name} {
						send(wordOf(guard.MsgDead, name, by, incarnation), at.to)
						send(wordOf(guard.MsgSuspect, name, by, incarnation), at.to)
					}
					send(guard.AliveMessage(guard.Claim{Name: name, Incarnation: uint64(incarnation), Addr: hostile.advertise, Meta: meta, Versions: versions}), at.to)
				}
				head := exchange.Head{Origin: exchange.IDOf(name), Version: exchange.Version{Incarnation: at.of.incarnation.Load()}}
				send(exchange.Advert{Kind: exchange.Farewell, Head: head}.AppendTo(nil), at.to)
				stream(listing(name, addr, uint32(round), memberlist.StateDead), at.to)
				stream(listing(name, addr, math.MaxUint32, memberlist.StateLeft), at.to)
				stream(promise(1<<20, 20<<20), at.to)
				for i := range 100 {
					nobody := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(round), byte(i)}), 7946)
					send(guard.AliveMessage(guard.Claim{Name: fmt.Sprintf("nobody%d.%d", round, i), Incarnation: 1, Addr: nobody, Meta: meta, Versions: versions}), at.to)
				}
				heard.mu.Lock()
				for _, b := range heard.packets {
					heard.WriteTo(b, net.UDPAddrFromAddrPort(at.to.advertise))
				}
				heard.mu.Unlock()
			}
			if round == 25 {
				start("p3", "10.0.0.3")
			}
			p1.cfg.Holdings.Keys().Add(key("p1", round))
			time.Sleep(100 * time.Millisecond)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		used := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
		heard.mu.Lock()
		repeated := len(heard.packets)
		heard.mu.Unlock()
		t.Logf("it took %d KiB; %d packets were repeated", used>>10, repeated)
		if used > 64<<20 {
			t.Errorf("it took %d MiB", used>>20)
		}
		if repeated == 0 {
			t.Error("nothing was repeated")
		}
		within(t, 10*time.Second, c.inStep)
		cfg = c.config("p2", "10.0.0.99")
		cfg.Join = []string{"10.0.0.1:7946"}
		other, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if err := other.Join(t.Context()); !errors.Is(err, ErrNameTaken) {
			t.Errorf("Join by a name of another = %v, want ErrNameTaken", err)
		}
		time.Sleep(time.Minute)
		for _, n := range c.nodes {
			for _, m := range n.memberlist.Members() {
				if of := c.nodes[m.Name]; m.State != memberlist.StateAlive || of != nil && m.Address() != of.Addr() {
					t.Errorf("a minute later %s is in state %d at %s for %s", m.Name, m.State, m.Address(), n.cfg.Name)
				}
			}
			if got := n.memberlist.NumMembers(); got != 4 {
				t.Errorf("a minute later %s has %d members, want 4", n.cfg.Name, got)
			}
		}
		if n := gone.Load(); n != 0 {
			t.Errorf("a live peer was down %d times", n)
		}
	})
}
