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

// storeMembers puts the states of members into the table, and returns those before, which are zero values of new members. It
// leaves out members that NotifyAlive excludes.
func (g *group) storeMembers(events map[string]memberEvent, now time.Time) map[*member]memberInfo {
	table, cloned := *g.members.Load(), false
	before := make(map[*member]memberInfo, len(events))
	for _, ev := range events {
		m := table[ev.name]
		meta, err := exchange.DecodeMeta(ev.metadata)
		if err != nil && (m == nil || ev.up) {
			continue
		}
		var old memberInfo
		if m == nil {
			m = &member{name: ev.name, id: exchange.IDOf(ev.name)}
			if !cloned {
				table, cloned = maps.Clone(table), true
			}
			table[ev.name] = m
		} else {
			old = *m.info.Load()
		}
		info := &memberInfo{ev, meta, now, memberSum(ev.name, ev.metadata)}
		if old.up {
			g.memberSum.Add(-old.sum)
			g.others.Add(-1)
		}
		if info.up {
			g.memberSum.Add(info.sum)
			g.others.Add(1)
		}
		if !old.differs(info) {
			info.since = old.since
		}
		m.info.Store(info)
		if !ev.up {
			m.up.Store(false)
			m.knows.Store(false)
			m.deaf.note(false)
			m.mute[0].note(false)
			m.mute[1].note(false)
		}
		before[m] = old
	}
	g.members.Store(&table)
	return before
}

// differs reports whether a member came, went or began a new life between two states.
func (old *memberInfo) differs(now *memberInfo) bool {
	return old.meta.Incarnation != now.meta.Incarnation || old.up != now.up
}

// forgetDead drops peers that have been dead for longer than deadMemory, and those dead for longest
// beyond deadKept.
func (g *group) forgetDead(now time.Time) {
	old := *g.members.Load()
	dead := slices.DeleteFunc(slices.Collect(maps.Values(old)), func(m *member) bool { return m.info.Load().up })
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
