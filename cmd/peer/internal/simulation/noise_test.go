package simulation

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/memnet"
)

// Bits turn on the way between peers, and in the files in which they save digests. Only what gossip
// sends is damaged: TCP's checksums protect HTTP as well, and what gets past them cannot be noticed
// in a header.

// noise adds damage to gossip and to saved digests, and restarts that read these.
func (s *schedule) noise(rng *rand.Rand) {
	at, node := rng.IntN(s.Seconds*1000), rng.IntN(s.Peers)
	s.Faults = append(s.Faults, fault{Kind: "noise", At: rng.IntN(s.Seconds * 1000), For: 1000 + rng.IntN(s.Seconds*500), Node: rng.IntN(s.Peers), To: theOrigin,
		P: []float64{0.02, 0.2, 1}[rng.IntN(3)]})
	for range 1 + rng.IntN(3) {
		s.Faults = append(s.Faults, fault{Kind: "saved-digests", At: at, For: rng.IntN(3000), Node: node, To: theOrigin, N: rng.Int64N(4)})
		at += rng.IntN(10_000)
	}
}

// A noisyNetwork is a peer's network, on which bits of what its gossip sends turn while p.noisy is set.
type noisyNetwork struct {
	*memnet.Host
	p *peer

	mu  sync.Mutex
	rng *rand.Rand
}

func (p *peer) network() gossip.Network {
	return &noisyNetwork{Host: p.host, p: p, rng: rand.New(rand.NewPCG(p.w.s.Seed, uint64(p.index)))}
}

func (p *peer) setNoise(share float64) {
	p.mu.Lock()
	p.noisy = share
	p.mu.Unlock()
}

// damaged returns b, or a copy of it with a bit turned.
func (n *noisyNetwork) damaged(b []byte, of string) []byte {
	n.p.mu.Lock()
	share := n.p.noisy
	n.p.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(b) == 0 || share == 0 || n.rng.Float64() >= share {
		return b
	}
	n.p.w.sometimes("a damaged " + of)
	b = bytes.Clone(b)
	b[n.rng.IntN(len(b))] ^= 1 << n.rng.IntN(8)
	return b
}

func isGossip(addr string) bool { return strings.HasSuffix(addr, ":7946") }

func (n *noisyNetwork) ListenPacket(addr string) (net.PacketConn, error) {
	c, err := n.Host.ListenPacket(addr)
	return &noisyPackets{c, n}, err
}

func (n *noisyNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Host.Dial(ctx, addr)
	if err != nil || !isGossip(addr) {
		return c, err
	}
	return &noisyConn{c, n}, nil
}

func (n *noisyNetwork) Listen(addr string) (net.Listener, error) {
	l, err := n.Host.Listen(addr)
	if err != nil || !isGossip(addr) {
		return l, err
	}
	return &noisyListener{l, n}, nil
}

type noisyPackets struct {
	net.PacketConn
	n *noisyNetwork
}

func (c *noisyPackets) WriteTo(b []byte, to net.Addr) (int, error) {
	return c.PacketConn.WriteTo(c.n.damaged(b, "packet"), to)
}

type noisyListener struct {
	net.Listener
	n *noisyNetwork
}

func (l *noisyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &noisyConn{c, l.n}, nil
}

type noisyConn struct {
	net.Conn
	n *noisyNetwork
}

func (c *noisyConn) Write(b []byte) (int, error) { return c.Conn.Write(c.n.damaged(b, "stream")) }

func (c *noisyConn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// savedDigests is the file in which a peer saves digests. It is on a disk of its own, without faults.
func (p *peer) savedDigests() string { return filepath.Join(p.w.dir, "digests-"+p.ip) }

// damageSaved damages the file in which a peer that is down has saved digests, or replaces it by another's.
func (p *peer) damageSaved(f fault) {
	rng := rand.New(rand.NewPCG(p.w.s.Seed, uint64(f.At)))
	b, err := os.ReadFile(p.savedDigests())
	if err != nil || len(b) == 0 {
		return
	}
	switch at := rng.IntN(len(b)); f.N {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		b = b[:at]
	case 2:
		b = append(b[at:], b[:at]...)
	default:
		if b, err = os.ReadFile(p.w.peers[(p.index+1)%len(p.w.peers)].savedDigests()); err != nil {
			return
		}
	}
	if err := os.WriteFile(p.savedDigests(), b, 0o600); err != nil {
		panic(err)
	}
	p.w.sometimes("saved digests are damaged")
}
