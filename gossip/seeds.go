package gossip

import (
	"errors"
	"slices"

	"github.com/summarycache/summarycache/digest"
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
func (g *group) seedsUnder(r *secrets.Ring) []uint64 {
	if g.ownSeed {
		return []uint64{g.cfg.seed}
	}
	var out []uint64
	for _, s := range r.Secrets {
		out = append(out, s.Seed)
	}
	return out
}

// digestSeeds returns the seeds in use, this peer's own first.
func (g *group) digestSeeds() []uint64 { return *g.accepted.Load() }

// Seed returns the digest seed under which this peer should publish: that of its secret, unless
// Config.Holdings has another.
func (n *Node) Seed() uint64 { return n.made().digestSeeds()[0] }

// checkSeed returns an error if this peer publishes under none of seeds.
func (n *Node) checkSeed(seeds []uint64) error {
	if n.cfg.Holdings == nil || slices.Contains(seeds, n.cfg.Holdings.set.Geometry().Seed) {
		return nil
	}
	return errors.New("gossip: this peer's digest is under the seed of a secret that would no longer be accepted: " +
		"change its seed first (see Holdings.Reseed)")
}
