package gossip

import (
	"bytes"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// doubtfulFor is for how long a member is no candidate after it was away while an invalidation came
// that this peer has forgotten since. The member may hold what was invalidated, until it has recalled
// what it missed. That takes seconds. The death of a member may be noticed that much too late.
const doubtfulFor = time.Minute

// handleMemberEvents puts the queued states of members into the table, the engine and the removals.
func (h *host) handleMemberEvents() {
	events := h.arrived()
	if len(events) == 0 {
		return
	}
	h.runEngine() // first handle earlier messages
	now := time.Now()
	for m, old := range h.storeMembers(events, now) {
		h.memberChanged(m, old, now)
	}
	h.asking.members.Store(new(directory))
}

func (h *host) memberChanged(m *member, old memberInfo, now time.Time) {
	info := m.info.Load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if info.up {
		h.engine.PeerLight(now, m.name, info.meta.Light)
		h.engine.PeerUp(now, m.name, info.meta.Incarnation)
		h.lookAtHoldings() // without a live peer, changes wait
		forgotten := h.removals.PeerUp(now, m.name, info.meta.Incarnation)
		returned := old.addr.IsValid() && !old.up
		if returned && old.meta.Incarnation == info.meta.Incarnation && forgotten.After(old.since.Add(-doubtfulFor)) {
			m.doubtful.Store(now.Add(doubtfulFor).UnixNano())
		}
		m.up.Store(true)
		if returned {
			h.removals.Returned(m.name, now)
		}
	} else {
		h.engine.PeerDown(now, m.name)
		h.removals.With(func(e *invalidation.Engine) { e.PeerDown(uint64(exchange.IDOf(m.name))) })
	}
	if old.differs(info) {
		h.reportMember(m, info.up, now)
	}
	if info.up && !bytes.Equal(old.metadata, info.metadata) {
		h.logDifferentSettings(m)
	}
}

// reportMember logs that a member came or went, and calls the hook. It is called with n.mu held.
func (h *host) reportMember(m *member, up bool, now time.Time) {
	info := m.info.Load()
	hook, msg := h.cfg.Hooks.PeerDown, "a peer is gone"
	if up {
		hook, msg = h.cfg.Hooks.PeerUp, "a peer is here"
	} else if m.hasLeft(info) {
		msg = "a peer has left"
	}
	h.log.Info(msg, "member", m.name, "addr", info.addr, "service", info.meta.Service)
	if hook != nil {
		d := h.describe(m, now)
		h.hook(func() { hook(d) })
	}
}
