package gossip

import "github.com/summarycache/summarycache/digest"

// Digest returns the digest of another peer as it is held now, verified, whether or
// not that peer is alive. ok is false if none is held.
func (n *Node) Digest(peer string) (f *digest.Filter, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.engine.Replica(peer)
	return r.Filter, ok && r.Filter != nil
}
