package gossip

import (
	"fmt"
	"log/slog"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// A seeded index is what lookups ask: the digests whose keys are hashed under one seed.
// There is more than one only while the seed of a cluster changes.
type seeded struct {
	seed  uint64
	index *index.Index
}

// canaryOf shows how keys are hashed under a seed (PROTOCOL.md 3.1).
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

// seedsUnder returns the seeds of the digests that are used under the secrets of r,
// this peer's own first.
func (n *Node) seedsUnder(r *ring) []uint64 {
	if n.ownSeed {
		return []uint64{n.cfg.seed}
	}
	var out []uint64
	for _, s := range r.secrets {
		out = append(out, s.seed)
	}
	return out
}

// digestSeeds returns those that are in use, this peer's own first.
func (n *Node) digestSeeds() []uint64 {
	views := *n.views.Load()
	out := make([]uint64, len(views))
	for i, v := range views {
		out[i] = v.seed
	}
	return out
}

// Seed returns the digest seed that this peer is to publish under: that of its
// secret, unless [Config] said otherwise.
func (n *Node) Seed() uint64 { return (*n.views.Load())[0].seed }

// setViews keeps what is known under those seeds, forgets what is known under
// others, and begins with nothing where the seed is new.
func (n *Node) setViews(seeds []uint64) {
	var old []seeded
	if p := n.views.Load(); p != nil {
		old = *p
	}
	fresh := make([]seeded, len(seeds))
	for i, s := range seeds {
		fresh[i] = seeded{s, nil}
		for _, v := range old {
			if v.seed == s {
				fresh[i] = v
			}
		}
		if fresh[i].index == nil {
			fresh[i].index = index.New()
		}
	}
	n.views.Store(&fresh)
}

// viewOf returns the index of the digests under a seed; nil if that is not in use.
func (n *Node) viewOf(seed uint64) *index.Index {
	for _, v := range *n.views.Load() {
		if v.seed == seed {
			return v.index
		}
	}
	return nil
}

// learn changes what lookups see of a peer. It runs in the node's loop only.
func (n *Node) learn(m *member, u exchange.Update) {
	if u.Filter == nil {
		n.unlearn(m, nil)
		return
	}
	index := n.viewOf(u.Filter.Geometry().Seed)
	if index == nil {
		n.quiet.log(slog.LevelWarn, "seed "+m.name, "a peer is not asked: its digest uses a seed that is no longer accepted", "member", m.name)
		n.unlearn(m, nil)
		return
	}
	n.limit(index)
	if err := index.Apply(m.name, u.Delta, u.Filter); err != nil {
		n.quiet.log(slog.LevelWarn, "index "+m.name, "a peer is no candidate: no memory left in the index", "member", m.name, "err", err)
		n.unlearn(m, nil)
		return
	}
	n.unlearn(m, index)
	m.inUse.Store(u.Filter)
}

// unlearn makes lookups see nothing of a peer, except in the index where it is kept.
// A lookup that asks one index after the other while the peer moves might see it in
// neither: the count of moves tells it to ask again.
func (n *Node) unlearn(m *member, but *index.Index) {
	if was := m.inUse.Load(); was != nil {
		if index := n.viewOf(was.Geometry().Seed); index != nil && index != but {
			n.moves.Add(1)
			index.Delete(m.name)
		}
	}
	if but == nil {
		m.inUse.Store(nil)
	}
}

// limit divides the memory of all indexes: one may have what the others leave.
func (n *Node) limit(index *index.Index) {
	most := n.cfg.Limits.IndexBytes
	if most == 0 {
		return
	}
	for _, v := range *n.views.Load() {
		if v.index != index && v.index.Len() > 0 {
			most -= v.index.MemoryBytes()
		}
	}
	index.SetMemoryLimit(max(most, 1))
}

// reindex brings what lookups see in line with the seeds in use: it forgets the
// digests under others, and takes up those under a seed that is used again. It runs
// in the node's loop only.
func (n *Node) reindex(seeds []uint64) {
	table := *n.members.Load()
	n.setViews(seeds)
	for name, m := range table {
		f := m.inUse.Load()
		if f != nil && n.viewOf(f.Geometry().Seed) == nil {
			m.inUse.Store(nil)
			n.log.Warn("a peer is not asked: its digest uses a seed that is no longer accepted", "member", name)
		}
		n.mu.Lock()
		r, ok := n.engine.Usable(name)
		n.mu.Unlock()
		if ok && m.inUse.Load() == nil && n.viewOf(r.Geometry().Seed) != nil {
			n.learn(m, exchange.Update{Peer: name, Filter: r})
		}
	}
}

// checkSeed reports whether this peer publishes under one of seeds.
func (n *Node) checkSeed(seeds []uint64) error {
	if n.cfg.Holdings == nil {
		return nil
	}
	own := n.cfg.Holdings.filter.Geometry().Seed
	for _, s := range seeds {
		if s == own {
			return nil
		}
	}
	return fmt.Errorf("gossip: this peer's digest is hashed under a secret that would not be accepted any more: rebuild it first (see Holdings.Reseed)")
}
