package gossip

import (
	"slices"

	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// applyUpdates changes the filters that lookups use. It runs in the node's loop only.
func (h *host) applyUpdates(updates []exchange.Update) {
	table := *h.members.Load()
	var changes []index.Change
	flush := func() {
		h.index.Apply(changes...) // without an error, since the index has no limit of its own
		for _, c := range changes {
			table[c.Peer].inUse.Store(c.Next)
		}
		changes = changes[:0]
	}
	for _, u := range updates {
		m, f := table[u.Peer], u.Filter
		if m == nil {
			continue
		}
		if f != nil && !slices.Contains(h.digestSeeds(), f.Geometry().Seed) {
			h.log.Warn("a peer is no candidate: its digest uses a seed that is no longer accepted", "member", m.name)
			f = nil
		}
		if f != nil {
			changes = append(changes, index.Change{Peer: m.name, Delta: u.Delta, Next: f})
			continue
		}
		flush() // in their order
		h.index.Delete(m.name)
		m.inUse.Store(nil)
	}
	flush()
}

// reindex changes the seeds in use: lookups no longer use digests under others, and use again those
// under a seed that is in use again. It runs in the node's loop only.
func (h *host) reindex(seeds []uint64) {
	h.accepted.Store(&seeds)
	var updates []exchange.Update
	for name, m := range *h.members.Load() {
		var r exchange.Replica
		h.with(func(e *exchange.Engine) { r, _ = e.Replica(name) })
		if r.Usable && slices.Contains(seeds, r.Filter.Geometry().Seed) == (m.inUse.Load() == nil) {
			updates = append(updates, exchange.Update{Peer: name, Filter: r.Filter})
		}
	}
	h.applyUpdates(updates)
}
