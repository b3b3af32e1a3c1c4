package gossip

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// TestForgetDead checks that dead peers are forgotten after a day, and beyond so many those that died first. A peer that
// was up for longer and whose death the loop has yet to take up has not been dead for a day.
func TestForgetDead(t *testing.T) {
	now := time.Now()
	type peer struct {
		name string
		up   bool          // as the loop knows it
		dies bool          // memberlist has called, and the loop is still to take that up
		ago  time.Duration // since its state changed last
	}
	var many []peer
	for i := range deadKept + 7 {
		many = append(many, peer{fmt.Sprintf("dead-%04d", i), false, false, time.Duration(i) * time.Second})
	}
	names := func(peers []peer) (list []string) {
		for _, p := range peers {
			list = append(list, p.name)
		}
		return list
	}
	for _, c := range []struct {
		name  string
		peers []peer
		left  []string
	}{
		{"nobody", nil, nil},
		{"up", []peer{{"a", true, false, 2 * deadMemory}}, []string{"a"}},
		{"dies after two days", []peer{{"a", true, true, 2 * deadMemory}, {"b", false, false, deadMemory}}, []string{"a"}},
		{"dead for almost a day", []peer{{"a", false, false, deadMemory - 1}}, []string{"a"}},
		{"dead for a day", []peer{{"a", false, false, deadMemory}}, nil},
		{"some of each", []peer{{"a", false, false, time.Hour}, {"b", false, false, 2 * deadMemory}, {"c", true, false, 3 * deadMemory}}, []string{"a", "c"}},
		{"many", many, names(many[:deadKept])},
		{"many, and one up", append(slices.Clone(many), peer{"up", true, false, 2 * deadMemory}), append(names(many[:deadKept]), "up")},
	} {
		table := make(memberTable)
		for _, p := range c.peers {
			m := &member{name: p.name}
			m.up.Store(p.up && !p.dies)
			m.info.Store(&memberInfo{memberEvent: memberEvent{name: p.name, up: p.up}, since: now.Add(-p.ago)})
			table[p.name] = m
		}
		var g group
		g.members.Store(&table)
		g.forgetDead(now)
		if left := slices.Sorted(maps.Keys(*g.members.Load())); !slices.Equal(left, c.left) {
			t.Errorf("%s: forgetDead leaves %d peers, want %d: %.80q", c.name, len(left), len(c.left), left)
		}
		if len(table) != len(c.peers) {
			t.Errorf("%s: the table that lookups read has changed", c.name)
		}
	}
}
