package gossip

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// refused has the peers that are no members because there are too many.
type refused struct {
	mu sync.Mutex
	at map[string]time.Time // by name, the last time
}

const (
	refusedFor = 10 * time.Minute // for which a peer counts as refused: the others announce it again meanwhile
	maxRefused = 1024
)

// refuse notes that a peer is no member because there are too many.
func (g *group) refuse(name string, at netip.AddrPort, err error) {
	g.log.Warn("refused a member: there are too many", "member", name, "addr", at, "err", err)
	r, now := &g.refused, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.at, func(_ string, at time.Time) bool { return now.Sub(at) > refusedFor })
	if _, known := r.at[name]; known || len(r.at) < maxRefused {
		if r.at == nil {
			r.at = make(map[string]time.Time)
		}
		r.at[name] = now
	}
}

// refusals returns the names of the peers that were refused lately and have not become members since, in order.
func (g *group) refusals() []string {
	r, now, members := &g.refused, time.Now(), *g.members.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.at, func(name string, at time.Time) bool {
		m := members[name]
		return now.Sub(at) > refusedFor || m != nil && m.up.Load()
	})
	return slices.Sorted(maps.Keys(r.at))
}
