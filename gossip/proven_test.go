package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
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
// while they advertise, and looks which of them are dead for the others within 15 s and a minute later. One that
// nobody answers probes less often, so it has the minute.
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
								if dead := c.nodes["p1"].live(name) == nil; dead && !tc.firstDead || tc.all && !dead && wait > 15*time.Second {
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
		n.cfg.Holdings.Keys().Filter().Add(key(n.cfg.Name, i))
	}
}

// TestDoubtIsProbed: a peer that did not answer is probed at once, whatever it has proven before.
func TestDoubtIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sum [2]time.Duration
		for i := range 80 {
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
		t.Logf("a death is noticed after %v, after %v with a doubt", sum[0]/40, sum[1]/40)
		if sum[1] > sum[0]-20*time.Second {
			t.Error("doubts make no difference")
		}
	})
}
