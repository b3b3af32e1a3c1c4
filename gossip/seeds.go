package gossip

import (
	"errors"
	"slices"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// canaryOf returns the canary of a seed (PROTOCOL.md 3.1).
func canaryOf(seed uint64) uint32 {
	return uint32(digest.KeyOfString(seed, "summarycache canary") >> 32)
}

func canariesOf(seeds []uint64) []uint32 {
	out := make([]uint32, len(seeds))
	for i, s := range seeds {
		out[i] = canaryOf(s)
	}
	return out
}

// seedsUnder returns the seeds of the digests that can be used under the secrets of r, this peer's own
// first.
func (n *Node) seedsUnder(r *secrets.Ring) []uint64 {
	if n.ownSeed {
		return []uint64{n.cfg.seed}
	}
	var out []uint64
	for _, s := range r.Secrets {
		out = append(out, s.Seed)
	}
	return out
}

// digestSeeds returns the seeds in use, this peer's own first.
func (n *Node) digestSeeds() []uint64 { return *n.accepted.Load() }

// Seed returns the digest seed under which this peer should publish: that of its secret, unless
// Config.Holdings has another.
func (n *Node) Seed() uint64 { return n.digestSeeds()[0] }

// learn changes the filter that lookups use for a peer. It runs in the node's loop only.
func (n *Node) learn(m *member, u exchange.Update) {
	f := u.Filter
	if f != nil && !slices.Contains(n.digestSeeds(), f.Geometry().Seed) {
		n.log.Warn("a peer is no candidate: its digest uses a seed that is no longer accepted", "member", m.name)
		f = nil
	}
	if f != nil {
		if m.inUse.Load() == nil {
			n.index.Expect(n.publishers())
		}
		n.index.Apply(m.name, u.Delta, f) // without an error, since the index has no limit of its own
	} else if planted.Fault != "index-stays" {
		n.index.Delete(m.name)
	}
	m.inUse.Store(f)
}

// publishers returns how many live members answer siblings, and so have digests.
func (n *Node) publishers() (peers int) {
	for _, m := range *n.members.Load() {
		if m.up.Load() && m.info.Load().meta.Service != "" {
			peers++
		}
	}
	return peers
}

// reindex changes the seeds in use: lookups no longer use digests under others, and use again those
// under a seed that is in use again. It runs in the node's loop only.
func (n *Node) reindex(seeds []uint64) {
	n.accepted.Store(&seeds)
	for name, m := range *n.members.Load() {
		var r exchange.Replica
		n.with(func(e *exchange.Engine) { r, _ = e.Replica(name) })
		if r.Usable && slices.Contains(seeds, r.Filter.Geometry().Seed) == (m.inUse.Load() == nil) {
			n.learn(m, exchange.Update{Peer: name, Filter: r.Filter})
		}
	}
}

// checkSeed returns an error if this peer publishes under none of seeds.
func (n *Node) checkSeed(seeds []uint64) error {
	if n.cfg.Holdings == nil || slices.Contains(seeds, n.cfg.Holdings.set.Geometry().Seed) {
		return nil
	}
	return errors.New("gossip: this peer's digest is under the seed of a secret that would no longer be accepted: change its seed first (see Holdings.Reseed)")
}
