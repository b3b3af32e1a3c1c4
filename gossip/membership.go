package gossip

import (
	"maps"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// arrived returns the queued states of members, and forgets them.
func (g *group) arrived() map[string]memberEvent {
	g.inbox.Lock()
	defer g.inbox.Unlock()
	if len(g.inbox.members) == 0 {
		return nil // the map itself is filled while others look at it
	}
	events := g.inbox.members
	g.inbox.members = make(map[string]memberEvent)
	return events
}

// take puts the state of a member into the table. It returns nil for one that NotifyAlive excludes. old is the
// state before; its zero value if the member is new.
func (g *group) take(ev memberEvent, now time.Time) (m *member, old memberInfo) {
	table := *g.members.Load()
	m = table[ev.name]
	meta, err := exchange.DecodeMeta(ev.metadata)
	if err != nil && (m == nil || ev.up) {
		return nil, old
	}
	if m == nil {
		m = &member{name: ev.name, spread: uint64(exchange.IDOf(ev.name))}
		table = maps.Clone(table)
		table[ev.name] = m
	} else {
		old = *m.info.Load()
	}
	info := &memberInfo{ev, meta, now, memberSum(ev.name, ev.metadata)}
	if !old.differs(info) {
		info.since = old.since
	}
	m.info.Store(info)
	g.members.Store(&table)
	if !ev.up {
		m.up.Store(false)
		m.knows.Store(false)
	}
	return m, old
}

// differs reports whether a member came, went or began a new life between two states.
func (old *memberInfo) differs(now *memberInfo) bool {
	return old.meta.Incarnation != now.meta.Incarnation || old.up != now.up
}

// forgetDead drops peers that have been dead for longer than deadMemory, and those dead for longest
// beyond deadKept.
func (g *group) forgetDead(now time.Time) {
	old := *g.members.Load()
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
	g.members.Store(&table)
}
