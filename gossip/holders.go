package gossip

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// question handles a question or a reply that has arrived.
func (h *host) question(b []byte, from netip.AddrPort) {
	a := &h.asking
	m := h.directory().at[from]
	h.meters.in.packet(Requests, len(b))
	if m == nil {
		return // no member, or none that this peer has to do with
	}
	if r, err := exchange.DecodeReply(b); err == nil {
		a.with(func() {
			select {
			case a.waiting[r.Number] <- answered{m, r}:
			default:
			}
		})
	}
	if q, err := exchange.DecodeQuestion(b); err == nil {
		r := h.holders(q, m)
		if b = r.AppendTo(nil); h.transport.write(b, from) == nil {
			h.meters.out.packet(Requests, len(b))
		}
	}
}

// holders answers a question of another peer: it names those of the asker's zone first, and to each asker others.
func (h *host) holders(q exchange.Question, asker *member) exchange.Reply {
	a := &h.asking
	r := exchange.Reply{Number: q.Number, NotYet: !a.complete.Load()}
	a.with(func() {
		if a.count.Answered++; r.NotYet {
			a.count.Deferred++
		}
	})
	if r.NotYet {
		return r
	}
	type named struct {
		exchange.Holder
		far  int // 0 in the asker's zone, 1 elsewhere
		rank uint64
	}
	var buf [maxMatches]index.Match
	var all []named
	table, now := *h.members.Load(), time.Now()
	far := func(zone string) int {
		if zone == asker.info.Load().meta.Zone {
			return 0
		}
		return 1
	}
	var own *digest.Filter
	id := exchange.IDOf(h.cfg.Name)
	if h.cfg.Service != "" && h.cfg.Holdings != nil {
		own = h.cfg.Holdings.Filter().Current()
	}
	for i, k := range q.Keys {
		if own != nil && own.MayContain(k) {
			all = append(all, named{exchange.HolderOf(id, i, own.FalsePositiveRate(), 0), far(h.cfg.Zone), mix(mix(uint64(k)^uint64(id)) ^ asker.spread)})
		}
		for _, match := range h.index.Lookup(buf[:0], k) {
			if c, ok := h.candidate(table, match, now, k); ok && c.Peer != asker.name {
				id := exchange.IDOf(c.Peer)
				all = append(all, named{exchange.HolderOf(id, i, c.FalsePositiveRate, c.Age), far(c.Zone), mix(c.rank ^ asker.spread)})
			}
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(b.rank, a.rank))
	})
	for _, n := range all[:min(len(all), exchange.MaxHolders)] {
		r.Holders = append(r.Holders, n.Holder)
	}
	return r
}
