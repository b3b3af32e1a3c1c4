package gossip

import (
	"maps"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// doubtfulFor is for how long a member is no candidate after it was away while an invalidation came
// that this peer has forgotten since. The member may hold what was invalidated, until it has recalled
// what it missed. That takes seconds. The death of a member may be noticed that much too late.
const doubtfulFor = time.Minute

// takeMembers puts the queued states of members into the table and the engine.
func (n *Node) takeMembers() {
	n.inbox.Lock()
	events := n.inbox.members
	if len(events) == 0 {
		n.inbox.Unlock()
		return
	}
	n.inbox.members = make(map[string]memberEvent)
	n.inbox.Unlock()
	n.step() // first handle earlier messages, such as a farewell
	for _, ev := range events {
		n.takeMember(ev)
	}
	n.sumMembers()
}

func (n *Node) takeMember(ev memberEvent) {
	now := time.Now()
	name, table := ev.name, *n.members.Load()
	m := table[name]
	meta, err := exchange.DecodeMeta(ev.metadata)
	if err != nil && (m == nil || ev.up) {
		return // NotifyAlive excludes these
	}
	var old memberInfo
	if m == nil {
		m = &member{name: name, spread: uint64(exchange.IDOf(name))}
		table = maps.Clone(table)
		table[name] = m
	} else {
		old = *m.info.Load()
	}
	info := &memberInfo{ev, meta, now}
	changed := old.meta.Incarnation != meta.Incarnation || old.up != ev.up
	if !changed {
		info.since = old.since
	}
	m.info.Store(info)
	n.members.Store(&table)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !ev.up {
		m.up.Store(false)
	}
	if ev.up {
		n.engine.PeerUp(now, name, meta.Incarnation, meta.Key)
		var forgotten time.Time
		n.invalidations.with(func(e *invalidation.Engine) {
			e.PeerUp(now, name, uint64(exchange.IDOf(name)), meta.Incarnation, meta.Key)
			forgotten = e.Forgotten()
		})
		returned := old.addr.IsValid() && !old.up
		if returned && old.meta.Incarnation == meta.Incarnation && forgotten.After(old.since.Add(-doubtfulFor)) {
			m.doubtful.Store(now.Add(doubtfulFor).UnixNano())
		}
		m.up.Store(true)
		if returned && now.Sub(n.recalled) >= recallInterval {
			n.recalled = now
			n.wg.Go(func() { n.recall(name) })
		}
	} else {
		m.knows.Store(false)
		n.engine.PeerDown(now, name)
		n.invalidations.with(func(e *invalidation.Engine) { e.PeerDown(uint64(exchange.IDOf(name))) })
	}
	if changed {
		n.reportMember(m, ev.up, now)
	}
}

// forgetDead drops peers that have been dead for longer than deadMemory, and those dead for longest
// beyond deadKept.
func (n *Node) forgetDead(now time.Time) {
	old := *n.members.Load()
	dead := slices.DeleteFunc(slices.Collect(maps.Values(old)), func(m *member) bool { return m.up.Load() })
	slices.SortFunc(dead, func(a, b *member) int { return b.info.Load().since.Compare(a.info.Load().since) })
	keep := 0
	for keep < min(len(dead), deadKept) && now.Sub(dead[keep].info.Load().since) < deadMemory {
		keep++
	}
	if keep == len(dead) {
		return
	}
	table := maps.Clone(old)
	for _, m := range dead[keep:] {
		delete(table, m.name)
	}
	n.members.Store(&table)
}

// reportMember logs that a member came or went, and calls the hook. It is called with n.mu held.
func (n *Node) reportMember(m *member, up bool, now time.Time) {
	info := m.info.Load()
	hook, msg := n.cfg.Hooks.PeerDown, "a peer is gone"
	if up {
		hook, msg = n.cfg.Hooks.PeerUp, "a peer is here"
	} else if m.hasLeft(info) {
		msg = "a peer has left"
	}
	n.log.Info(msg, "member", m.name, "addr", info.addr, "service", info.meta.Service)
	if hook != nil {
		d := n.describe(m, now)
		n.hook(func() { hook(d) })
	}
}
