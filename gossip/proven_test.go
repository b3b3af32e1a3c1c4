package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A tornNetwork loses packets, streams or both of its host on demand.
type tornNetwork struct {
	Network
	noPackets, noStreams *atomic.Bool
}

type tornPackets struct {
	net.PacketConn
	lost *atomic.Bool
}

func (n tornNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := n.Network.ListenPacket(addr)
	return tornPackets{c, n.noPackets}, err
}

func (n tornNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if n.noStreams.Load() {
		return nil, errors.New("streams are blocked")
	}
	return n.Network.Dial(ctx, addr)
}

func (c tornPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.lost.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

// TestLifeIsProvenByAnswers breaks the network between peers in several ways, while they are at rest and
// while they advertise, and looks which of them are dead for the others within 15 s and a minute later.
func TestLifeIsProvenByAnswers(t *testing.T) {
	for _, tc := range []struct {
		name           string
		breaks         func(c *cluster, nets []tornNetwork)
		firstDead, all bool // p1 is dead for the others; and they for p1
	}{
		{"packets and streams of one direction", func(c *cluster, nets []tornNetwork) {
			for i := 2; i <= len(nets); i++ {
				c.net.Cut("10.0.0.1", fmt.Sprintf("10.0.0.%d", i))
			}
		}, true, true},
		{"packets of one direction", func(c *cluster, nets []tornNetwork) { nets[0].noPackets.Store(true) }, false, false},
		{"all packets", func(c *cluster, nets []tornNetwork) {
			for _, n := range nets {
				n.noPackets.Store(true)
			}
		}, false, false},
		{"packets, and streams from the others", func(c *cluster, nets []tornNetwork) {
			nets[0].noPackets.Store(true)
			for _, n := range nets[1:] {
				n.noStreams.Store(true)
			}
		}, true, false},
		{"all streams", func(c *cluster, nets []tornNetwork) {
			for _, n := range nets {
				n.noStreams.Store(true)
			}
		}, false, false},
		{"a frozen peer whose system still accepts", func(c *cluster, nets []tornNetwork) { c.net.Host("10.0.0.1").Freeze() }, true, true},
	} {
		for _, peers := range []int{2, 3} {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/peers=%d/busy=%v", tc.name, peers, busy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c := newCluster(t)
						defer c.close()
						var nets []tornNetwork
						for i := 1; i <= peers; i++ {
							cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
							nets = append(nets, tornNetwork{cfg.Network, new(atomic.Bool), new(atomic.Bool)})
							cfg.detect, cfg.Network = detection{}, nets[i-1]
							if i > 1 {
								cfg.Join = []string{"10.0.0.1:7946"}
							}
							n := c.start(cfg)
							if busy {
								go n.change(time.Second)
							}
						}
						time.Sleep(time.Minute)
						tc.breaks(c, nets)
						for _, wait := range []time.Duration{15 * time.Second, time.Minute} {
							time.Sleep(wait)
							for i := 2; i <= peers; i++ {
								name := fmt.Sprintf("p%d", i)
								if dead := c.nodes[name].live("p1") == nil; dead != tc.firstDead {
									t.Errorf("for %s p1 is dead: %v", name, dead)
								}
								if dead := c.nodes["p1"].live(name) == nil; dead && !tc.firstDead || tc.all && !dead {
									t.Errorf("for p1 %s is dead: %v", name, dead)
								}
							}
						}
						c.net.Heal()
						c.net.Host("10.0.0.1").Thaw()
					})
				})
			}
		}
	}
}

// change makes a peer advertise something at each interval, until it ends.
func (n *Node) change(every time.Duration) {
	for i := 0; n.sleep(every); i++ {
		n.cfg.Holdings.Filter().Add(key(n.cfg.Name, i))
	}
}

// TestDoubtIsProbed: a peer that did not answer is probed at once, whatever it has proven before.
func TestDoubtIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sum [2]time.Duration
		for i := range 40 {
			c := newCluster(t)
			for i := 1; i <= 2; i++ {
				cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
				cfg.detect = detection{probe: 3 * time.Second}
				if i == 2 {
					cfg.Join = []string{"10.0.0.1:7946"}
				}
				c.start(cfg)
			}
			time.Sleep(time.Minute + time.Duration(i)*time.Second/3)
			c.kill("p2")
			p1 := c.nodes["p1"]
			if i%2 == 1 {
				p1.Doubt("p2")
				p1.Doubt("nobody")
			}
			sum[i%2] += within(t, time.Minute, func() error {
				if p1.live("p2") != nil {
					return errors.New("p2 is alive")
				}
				return nil
			})
			c.close()
		}
		t.Logf("a death is noticed after %v, after %v with a doubt", sum[0]/20, sum[1]/20)
		if sum[1] > sum[0]-20*time.Second {
			t.Error("doubts make no difference")
		}
	})
}

// A token proves life once, and only of the peer that got it, lately.
func TestTokens(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	at := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
	p1, p2 := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	pair := func() (probe []byte, l1, l2 *life) {
		l1, l2 = newLife(10, time.Second), newLife(10, time.Second)
		first := l1.probes([]byte{shortPing, 7, 0, 0, 0, 1, 2, 3}, p2, 0, at(0))
		if l2.hear(first, p1, at(0)) != nil || l2.spare(p1, 1, at(0)) {
			t.Error("a probe without a token proves something")
		}
		l1.hear(l2.answers([]byte{shortAck, 7, 0, 0, 0, 9, 9, 9, 9}, p1, at(0)), p2, at(0))
		if !l1.spare(p2, 1, at(0)) || l1.spare(p2, 1, at(3)) {
			t.Error("an answer proves nothing, or too long")
		}
		return l1.probes([]byte{shortPing, 8, 0, 0, 0, 1, 2, 3}, p2, 0x04030201, at(2)), l1, l2
	}
	probe, l1, l2 := pair()
	if again := l1.probes([]byte{shortPing, 9, 0, 0, 0, 1, 2, 3}, p2, 0, at(2)); len(again) != shortHead+shortTag {
		t.Errorf("a token is sent twice: %x", again)
	}
	if sum := l2.hear(probe, p1, at(2)); string(sum) != "\x01\x02\x03\x04" || !l2.spare(p1, 1, at(2)) || l2.spare(p1, 1, at(5)) {
		t.Errorf("a token proves nothing, or too long; the sum is %x", sum)
	}
	if l2.hear(probe, p1, at(6)) != nil || l2.spare(p1, 1, at(6)) {
		t.Error("a probe that came again proves something")
	}
	if l1.hear([]byte{shortAck, 7, 0, 0, 0}, p2, at(6)); l1.spare(p2, 1, at(6)) {
		t.Error("an answer to an earlier probe proves something")
	}
	for name, hear := range map[string]func(l2 *life){
		"another token": func(l2 *life) { probe[shortHead+shortTag]++; l2.hear(probe, p1, at(2)) },
		"another peer":  func(l2 *life) { l2.hear(probe, netip.MustParseAddrPort("10.0.0.3:1"), at(2)) },
		"a late token":  func(l2 *life) { l2.hear(probe, p1, at(33)) },
	} {
		probe, _, l2 = pair()
		if hear(l2); len(l2.peers) != 0 {
			t.Errorf("%s proves something", name)
		}
	}
	l2.max = 1
	if l2.proved(p2, 0, at(40)); len(l2.peers) != 1 {
		t.Errorf("%d peers are remembered, want at most %d", len(l2.peers), l2.max)
	}
}
