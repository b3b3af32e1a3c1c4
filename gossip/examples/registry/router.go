// Package registry finds which node of a cluster has a layer, manifest or tag of an image. It has the methods of
// Spegel's routing.Router, over a gossip.Node instead of a distributed hash table: a look-up is one in memory, and who
// does not answer is left out of the next.
package registry

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

// A Router advertises what the image store of this node has. The Node's Service is the address of its registry. It is
// safe for concurrent use.
type Router struct {
	Node   *gossip.Node
	failed sync.Map // name of a node: when it did not answer
}

// spared is how long no look-up finds a node that did not answer. By then gossip knows whether it is dead.
const spared = 15 * time.Second

// Ready reports whether the digest of another node is here, so that a look-up can find something.
func (r *Router) Ready(context.Context) (bool, error) {
	return slices.ContainsFunc(r.Node.Members(), func(m gossip.Member) bool { return m.Alive && m.MemoryBytes > 0 }), nil
}

// Lookup returns at most count nodes whose digests have the key; 0 = all of them. About one look-up in a thousand
// names a node that does not have it.
func (r *Router) Lookup(_ context.Context, key string, count int) (*Peers, error) {
	found := r.Node.Candidates(nil, key)
	p := &Peers{router: r}
	for _, c := range found {
		at, failed := r.failed.Load(c.Peer)
		addr, err := netip.ParseAddrPort(c.Service)
		if err == nil && (!failed || time.Since(at.(time.Time)) > spared) && (count <= 0 || len(p.list) < count) {
			p.list = append(p.list, Peer{c.Peer, addr})
		}
	}
	return p, nil
}

// Advertise adds keys to the digest of this node. Keys that it has stay as they are.
func (r *Router) Advertise(_ context.Context, keys []string) error {
	for _, key := range keys {
		r.Node.Holdings().Add(key)
	}
	return nil
}

// Withdraw removes keys from the digest of this node.
func (r *Router) Withdraw(_ context.Context, keys []string) error {
	for _, key := range keys {
		r.Node.Holdings().Remove(key)
	}
	return nil
}

// A Peer is a node and the address of its registry.
type Peer struct {
	Host string
	Addr netip.AddrPort
}

// Peers are the nodes that a look-up found. They are for the requests of one pull, also concurrent ones.
type Peers struct {
	router *Router
	mu     sync.Mutex
	list   []Peer // the longest unused first
}

// Acquire returns the node that was used least lately; false = none is left. Give it back by Release or Failed.
func (p *Peers) Acquire() (peer Peer, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) == 0 {
		return Peer{}, false
	}
	peer, p.list = p.list[0], p.list[1:]
	return peer, true
}

// Release gives back a node that has answered.
func (p *Peers) Release(peer Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, peer)
}

// Failed says that a node has not answered. No look-up finds it for a while, and gossip asks whether it lives.
func (p *Peers) Failed(peer Peer) {
	p.router.failed.Store(peer.Host, time.Now())
	p.router.Node.Doubt(peer.Host)
}
