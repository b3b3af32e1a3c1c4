package gossip

import (
	"slices"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/planted"
)

// learn changes the filter that lookups use for a peer. It runs in the node's loop only.
func (h *host) learn(m *member, u exchange.Update) {
	f := u.Filter
	if f != nil && !slices.Contains(h.digestSeeds(), f.Geometry().Seed) {
		h.log.Warn("a peer is no candidate: its digest uses a seed that is no longer accepted", "member", m.name)
		f = nil
	}
	if f != nil {
		if m.inUse.Load() == nil {
			h.index.Expect(h.publishers())
		}
		h.index.Apply(m.name, u.Delta, f) // without an error, since the index has no limit of its own
	} else if planted.Fault != "index-stays" {
		h.index.Delete(m.name)
	}
	m.inUse.Store(f)
}

// publishers returns how many live members answer siblings, and so have digests.
func (h *host) publishers() (peers int) {
	for _, m := range *h.members.Load() {
		if m.up.Load() && m.info.Load().meta.Service != "" {
			peers++
		}
	}
	return peers
}

// reindex changes the seeds in use: lookups no longer use digests under others, and use again those
// under a seed that is in use again. It runs in the node's loop only.
func (h *host) reindex(seeds []uint64) {
	h.accepted.Store(&seeds)
	for name, m := range *h.members.Load() {
		var r exchange.Replica
		h.with(func(e *exchange.Engine) { r, _ = e.Replica(name) })
		if r.Usable && slices.Contains(seeds, r.Filter.Geometry().Seed) == (m.inUse.Load() == nil) {
			h.learn(m, exchange.Update{Peer: name, Filter: r.Filter})
		}
	}
}
