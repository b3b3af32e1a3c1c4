package gossip

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// SetSecrets changes, while the node runs, which secret it uses and which others it accepts. A
// cluster moves from one secret to the next in three steps, during which lookups continue to work.
// All peers must have completed a step before any peer begins the next:
//
//	every peer: SetSecrets(old, fresh)   it understands peers that use the fresh one
//	every peer: SetSecrets(fresh, old)   it uses the fresh one
//	            Holdings.Reseed(fresh)   and publishes under its seed
//	every peer: SetSecrets(fresh)        a peer with only the old one is cut off
//
// Peers that will be cut off are named in the log. Connections under secrets that are no longer
// accepted are closed at once, and lookups no longer use digests under their seeds. SetSecrets has no
// effect and returns an error if the secrets are too short, too many or none, if the node was created
// without a secret, or if this peer's own digest is under the seed of a secret that is dropped.
func (n *Node) SetSecrets(primary []byte, accept ...[]byte) error {
	n.made().rotation.Lock()
	defer n.rotation.Unlock()
	fresh, err := n.ringOf(primary, accept)
	if err != nil {
		return err
	}
	seeds := n.seedsUnder(fresh)
	if err := n.checkSeed(seeds); err != nil {
		return err
	}
	for _, name := range n.cutOff(fresh) {
		n.log.Warn("a peer is cut off by a change of secrets: it skipped the step before", "member", name)
	}
	// Digests under old and new seeds are both usable before a peer with a new secret can connect,
	// and until peers with old secrets are disconnected.
	if !n.inLoop(func() { n.reindex(union(seeds, n.digestSeeds())) }) {
		return ErrClosed
	}
	n.ring.Store(fresh)
	n.acceptor.expel()
	n.pool.empty()
	if !n.inLoop(func() { n.reindex(seeds); n.sumSelf() }) {
		return ErrClosed
	}
	n.log.Info("the secrets have changed", "uses", secrets.Text(fresh.Secrets[0].ID), "accepts", len(fresh.Secrets))
	n.updateMetadata()
	return nil
}

func (n *Node) ringOf(primary []byte, accept [][]byte) (*secrets.Ring, error) {
	switch {
	case n.ctx.Err() != nil:
		return nil, ErrClosed
	case len(n.ring.Load().Secrets) == 0:
		return nil, errors.New("gossip: a node without a secret cannot be given one while it runs")
	case len(primary) == 0:
		return nil, errors.New("gossip: a node with a secret cannot do without one while it runs")
	}
	r, err := secrets.New(n.cfg.Cluster, primary, accept)
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	return r, nil
}

// cutOff returns the names of the live peers that have not completed the step before: under r, one of
// the two sides would not understand the other, or the peer's digest could not be used.
func (n *Node) cutOff(r *secrets.Ring) []string {
	ids, seeds := r.IDs(), n.seedsUnder(r)
	var out []string
	for name, m := range *n.members.Load() {
		if !m.up.Load() {
			continue
		}
		theirs := m.info.Load().meta.Secrets
		f := m.inUse.Load()
		if len(theirs) == 0 || !slices.Contains(theirs, ids[0]) || !slices.Contains(ids, theirs[0]) ||
			f != nil && !slices.Contains(seeds, f.Geometry().Seed) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func union(a, b []uint64) []uint64 {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// foreign logs a packet of this protocol that no accepted secret opens: from a peer that missed a
// change of secrets, or from another cluster. Without a secret it is from another cluster, whose name a stream will
// show.
func (g *group) foreign(from netip.Addr) {
	if g.ring.Load().Stream == nil {
		g.otherClusters.refused.Add(1)
		return
	}
	g.log.Error("dropped packets under a secret that is not accepted, or under none, or of another cluster", "from",
		from, "member", membersAt{g, from})
}

// membersAt is logged as the names of up to three members at an address, dead ones included.
type membersAt struct {
	g  *group
	at netip.Addr
}

func (m membersAt) LogValue() slog.Value {
	var names []string
	for name, other := range *m.g.members.Load() {
		if info := other.info.Load(); info != nil && info.addr.Addr() == m.at {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slog.StringValue(strings.Join(names[:min(len(names), 3)], ","))
}
