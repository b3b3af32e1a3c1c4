package gossip

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// deadMessage is memberlist's message that a peer is dead.
func deadMessage(name string, incarnation uint32) []byte {
	return wordOf(guard.MsgDead, name, "x", incarnation)
}

// wordOf returns memberlist's message of a kind about a peer.
func wordOf(kind byte, name, by string, incarnation uint32) []byte {
	return guard.Pack(kind, "Incarnation", incarnation, "Node", name, "From", by)
}

// listing returns a list of members with one in a state, and a live one that cannot take part, from which
// memberlist gets the versions that it requires.
func listing(name string, addr []byte, incarnation uint32, state memberlist.NodeStateType) []byte {
	member := func(name string, state memberlist.NodeStateType) []byte {
		return guard.Pack(0, "Name", name, "Addr", addr, "Port", uint16(7946), "Meta", "", "Incarnation", incarnation,
			"State", byte(state), "Vsn", "\x01\x05\x02\x00\x00\x00")[1:]
	}
	return slices.Concat(promise(2, 0), member("someone", memberlist.StateAlive), member(name, state))
}

// plainCluster starts three peers without a secret, and counts how often one was down for another.
func plainCluster(t *testing.T) (c *cluster, gone *atomic.Int64) {
	c, gone = newCluster(t), new(atomic.Int64)
	for i, name := range []string{"p1", "p2", "p3"} {
		cfg := c.config(name, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}[i])
		cfg.Secret = nil
		cfg.Holdings = NewHoldings(newFilter(t, nil))
		cfg.Hooks.PeerDown = func(Member) { gone.Add(1) }
		if i > 0 {
			cfg.Join = []string{"10.0.0.1:7946"}
		}
		c.start(cfg)
	}
	within(t, settling, c.inStep)
	return c, gone
}

// stranger returns a function by which a host outside a cluster sends packets to it.
func stranger(c *cluster) (send func(b []byte, to string), end func()) {
	from, err := c.net.Host("10.6.6.6").ListenPacket(":1")
	if err != nil {
		c.t.Fatal(err)
	}
	return func(b []byte, to string) {
		from.WriteTo(b, net.UDPAddrFromAddrPort(c.nodes[to].advertise))
	}, func() { from.Close() }
}

// TestNoPeerIsEvicted: one packet used to make a live peer dead for all others, permanently with the
// greatest incarnation.
func TestNoPeerIsEvicted(t *testing.T) {
	type flood struct {
		what string
		send func(c *cluster, packet func(b []byte, to string), to string)
	}
	var floods []flood
	for _, incarnation := range []uint32{1, 2, 1000, 1024, 1 << 16, 1 << 31, 1<<32 - 1} {
		for by, what := range map[string]string{"x": "a death", "p3": "a leave"} {
			floods = append(floods, flood{fmt.Sprintf("%s of incarnation %d", what, incarnation), func(_ *cluster, packet func(b []byte, to string), to string) {
				packet(wordOf(guard.MsgDead, "p3", by, incarnation), to)
			}})
		}
	}
	for _, state := range []memberlist.NodeStateType{memberlist.StateDead, memberlist.StateLeft} {
		floods = append(floods, flood{fmt.Sprintf("a list with state %d", state), func(c *cluster, _ func(b []byte, to string), to string) {
			conn, err := c.net.Host("10.6.6.6").Dial(t.Context(), c.nodes[to].Addr())
			if err != nil {
				t.Error(err)
				return
			}
			conn.Write(listing("p3", []byte{10, 0, 0, 3}, 10, state))
			time.AfterFunc(time.Second, func() { conn.Close() })
		}})
	}
	floods = append(floods, flood{"a farewell", func(c *cluster, packet func(b []byte, to string), to string) {
		h := exchange.Head{Origin: exchange.IDOf("p3"), Version: exchange.Version{Incarnation: c.nodes["p3"].incarnation.Load()}}
		farewell := exchange.Advert{Kind: exchange.Farewell, Head: h}.AppendTo(nil)
		packet(farewell, to)
		packet(wordOf(guard.MsgDead, "p3", "p3", 10), to)
	}})
	for _, f := range floods {
		t.Run(f.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, gone := plainCluster(t)
				defer c.close()
				packet, end := stranger(c)
				defer end()
				for range 20 {
					for _, to := range []string{"p1", "p2"} {
						f.send(c, packet, to)
					}
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(2 * time.Second)
				if n := gone.Load(); n != 0 {
					t.Errorf("a live peer was down %d times", n)
				}
				for _, at := range []string{"p1", "p2"} {
					for _, m := range c.nodes[at].memberlist.Members() {
						if m.State != memberlist.StateAlive {
							t.Errorf("2 s later %s is in state %d for %s", m.Name, m.State, at)
						}
					}
				}
				time.Sleep(time.Minute)
				if n := gone.Load(); n != 0 {
					t.Errorf("after a minute a live peer had been down %d times", n)
				}
			})
		})
	}
}

// TestNamesAreKept: no other address can take the name of a live peer, nor of one that has been dead for
// less than ten seconds. The name of a peer that left is free.
func TestNamesAreKept(t *testing.T) {
	for _, end := range []string{"lives", "dies", "leaves"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := plainCluster(t)
				defer c.close()
				p1 := c.nodes["p1"]
				down := time.Now()
				switch end {
				case "dies":
					c.kill("p3")
					within(t, 20*time.Second, func() error {
						if (*p1.members.Load())["p3"].up.Load() {
							return errors.New("p3 is alive")
						}
						return nil
					})
					down = time.Now()
				case "leaves":
					if err := c.nodes["p3"].Leave(t.Context()); err != nil {
						t.Fatal(err)
					}
					delete(c.nodes, "p3")
					synctest.Wait()
				}
				cfg := c.config("p3", "10.0.0.99")
				cfg.Secret, cfg.Holdings = nil, NewHoldings(newFilter(t, nil))
				cfg.Join = []string{"10.0.0.1:7946", "10.0.0.2:7946"}
				other, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				joined := other.Join(t.Context())
				if end == "lives" {
					if !errors.Is(joined, ErrNameTaken) {
						t.Errorf("Join = %v, want ErrNameTaken", joined)
					}
					other.enter([]greeted{{addr: "10.0.0.1:7946"}, {addr: "10.0.0.2:7946"}}) // without asking first
				}
				taken := func() bool {
					return (*p1.members.Load())["p3"].info.Load().addr == other.advertise && (*p1.members.Load())["p3"].up.Load()
				}
				for time.Since(down) < time.Minute && !taken() {
					time.Sleep(100 * time.Millisecond)
				}
				took := time.Since(down)
				t.Logf("the name was taken: %v, after %v", taken(), took)
				switch {
				case end == "lives" && taken():
					t.Errorf("the name was taken after %v", took)
				case end == "dies" && (!taken() || took < nameKept || took > 2*nameKept):
					t.Errorf("taken: %v after %v, want %v to %v", taken(), took, nameKept, 2*nameKept)
				case end == "leaves" && (!taken() || took > 5*time.Second):
					t.Errorf("taken: %v after %v, want it within 5 s", taken(), took)
				}
			})
		})
	}
}

// TestScreenLetsMembershipThrough: no message between honest peers is refused, with joins, losses, deaths
// and returns.
func TestScreenLetsMembershipThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var log logBuffer
		config := func(name, ip string) Config {
			cfg := c.config(name, ip)
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			if name != "p1" {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			return cfg
		}
		ips := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"}
		for i, ip := range ips {
			c.start(config("p"+string(rune('1'+i)), ip))
		}
		within(t, 10*time.Second, c.inStep)
		c.kill("p4")
		time.Sleep(20 * time.Second) // suspected, dead, told to others
		c.start(config("p4", "10.0.0.4"))
		time.Sleep(time.Minute) // lists of members are exchanged
		within(t, 10*time.Second, c.inStep)
		for name, n := range c.nodes {
			if s := n.Stats(); s.PacketsStrange != 0 {
				t.Errorf("%s refused %d packets", name, s.PacketsStrange)
			}
		}
		if log.has("refused a packet") || log.has("memberlist's encoding") {
			t.Errorf("the log is:\n%s", log.b.String())
		}
	})
}
