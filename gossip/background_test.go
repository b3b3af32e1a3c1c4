package gossip

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// used counts what a node does with its network.
type used struct {
	Network
	times *atomic.Int64
}

type usedPackets struct {
	net.PacketConn
	times *atomic.Int64
}

func (u used) Dial(ctx context.Context, addr string) (net.Conn, error) {
	u.times.Add(1)
	return u.Network.Dial(ctx, addr)
}

func (u used) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := u.Network.ListenPacket(addr)
	return usedPackets{c, u.times}, err
}

func (u usedPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	u.times.Add(1)
	return u.PacketConn.WriteTo(b, to)
}

// TestNothingBeginsAfterClose: what a stream, a packet or a caller makes a node do in the background does not begin once
// the node is closed, whose socket may belong to another program then.
func TestNothingBeginsAfterClose(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *Node, *member){
		"a stream suspects a member": func(t *testing.T, n *Node, m *member) { n.check(m.name, 1) },
		"a member came back":         func(t *testing.T, n *Node, m *member) { n.removals.Returned(m.name, time.Now()) },
		"a peer advertises":          func(t *testing.T, n *Node, m *member) { m.up.Store(false); n.meetAgain(m) },
		"a peer names itself": func(t *testing.T, n *Node, m *member) {
			n.meet("other", 1, m.info.Load().addr.String(), m.info.Load().addr.Addr())
		},
		"a caller sets seeds": func(t *testing.T, n *Node, m *member) { n.Inside().SetJoin([]string{"10.0.0.2:7946"}) },
		"a caller joins": func(t *testing.T, n *Node, m *member) {
			start := time.Now()
			if n.catchUp(t.Context()); time.Since(start) > 0 {
				t.Errorf("a Join waits %v for a closed node", time.Since(start))
			}
			if err := n.Join(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("Join of a closed node returns %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				var times atomic.Int64
				cfg := c.config("p1", "10.0.0.1")
				cfg.Network = used{cfg.Network, &times}
				n := c.start(cfg)
				other := c.config("p2", "10.0.0.2")
				other.Join = []string{"10.0.0.1:7946"}
				c.start(other)
				time.Sleep(10 * time.Second)
				m := n.live("p2")
				n.Close()
				time.Sleep(10 * time.Second) // until memberlist's last probe has ended
				times.Store(0)
				begin(t, n, m)
				time.Sleep(time.Minute)
				if used := times.Load(); used != 0 {
					t.Errorf("a closed node used the network %d times", used)
				}
			})
		})
	}
}
