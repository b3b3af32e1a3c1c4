package gossip

import (
	"net/netip"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// question handles a question or a reply that has arrived.
func (h *host) question(b []byte, from netip.AddrPort) {
	a := &h.asking
	m := h.directory().at[from]
	h.meters.in.packet(kindRequests, len(b))
	if m == nil {
		return // no member, or none that this peer has to do with
	}
	if r, err := exchange.DecodeReply(b); err == nil {
		a.with(func() {
			if q := a.waiting[r.Number]; q.keeper == m {
				select {
				case q.reply <- r:
				default: // it has one already
				}
			}
		})
	}
	if q, err := exchange.DecodeQuestion(b); err == nil {
		r := h.holders(q, m)
		if b = r.AppendTo(nil); h.transport.write(b, from) == nil {
			h.meters.out.packet(kindRequests, len(b))
		}
	}
}

// holders answers a question of another peer.
func (h *host) holders(q exchange.Question, asker *member) exchange.Reply {
	zone, table, now := asker.info.Load().meta.Zone, *h.members.Load(), time.Now()
	var own *digest.Filter
	if h.cfg.Service != "" && h.cfg.Holdings != nil {
		own = h.cfg.Holdings.Keys().Filter().Current()
	}
	var buf [maxMatches]index.Match
	r := q.Reply(asker.id, h.asking.complete.Load(), func(dst []exchange.Named, k digest.Key) []exchange.Named {
		if own != nil && own.MayContain(k) {
			dst = append(dst, exchange.Named{
				Peer: exchange.IDOf(h.cfg.Name), FalsePositives: own.FalsePositiveRate(), Far: zone != h.cfg.Zone,
			})
		}
		for _, match := range h.index.Lookup(buf[:0], k) {
			if c, ok := h.candidate(table, match, now, k); ok {
				dst = append(dst, exchange.Named{
					Peer: table[c.Peer].id, FalsePositives: c.FalsePositiveRate, Age: c.Age, Far: zone != c.Zone,
				})
			}
		}
		return dst
	})
	h.asking.with(func() {
		count := &h.asking.count
		if count.Answered++; r.NotYet {
			count.Deferred++
		}
	})
	return r
}
