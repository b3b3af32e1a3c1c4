package gossip

import (
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Member is what a node knows of another peer.
type Member struct {
	Name        string
	Addr        string   // of gossip, ip:port
	Service     string   // where it answers siblings, host:port; may be empty
	Secrets     []string // names of the secrets that it accepts, the one that it uses first; nil without any
	Incarnation uint64   // the life it is in
	Alive       bool
	Left        bool      // it is not alive, and said before that it would leave; false for one that died
	Since       time.Time // when Alive last changed

	// Of its digest; zero values if none is held.
	Version           exchange.Version
	Keys              uint64
	FalsePositiveRate float64
	Age               time.Duration // since it was last known to be current
	MemoryBytes       int           // of the replica
	Behind            bool          // a newer version is known to exist, or none is held yet
}

// member is what the node knows of a peer. It outlives the peer's absence, so that
// dead peers can be found again.
type member struct {
	name   string
	spread uint64       // orders candidates
	fresh  atomic.Int64 // Unix nanoseconds when its digest was last known to be current

	inUse atomic.Pointer[digest.Filter] // what lookups see of it; nil if nothing

	// Replaced as a whole by the node's loop.
	info atomic.Pointer[memberInfo]
	// up is cleared by memberlist's callback itself, before anything else
	// happens, so that a dead peer is no candidate from that moment.
	up atomic.Bool
	// knows is set when the peer said that this one is a live member for it,
	// and cleared when the peer dies.
	knows atomic.Bool
	// left is the life in which the peer said that it was about to leave; 0 if none.
	left atomic.Uint64
}

// hasLeft reports whether the peer said, in the life that info is of, that it was
// about to leave.
func (m *member) hasLeft(info *memberInfo) bool { return m.left.Load() == info.meta.Incarnation }

type memberInfo struct {
	node  memberlist.Node // a copy
	addr  netip.AddrPort
	meta  exchange.Meta
	since time.Time
	up    bool
}

// memberTable is read by lookups without a lock and replaced when members come or
// go for good.
type memberTable map[string]*member

// memberEvent is what memberlist's callbacks queue for the node's loop: the latest
// state of one peer.
type memberEvent struct {
	node memberlist.Node
	up   bool
}

// Members returns every other peer known, the living first, each group by name.
func (n *Node) Members() []Member {
	table := *n.members.Load()
	out := make([]Member, 0, len(table))
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range table {
		out = append(out, n.describe(m, now))
	}
	slices.SortFunc(out, func(a, b Member) int {
		if a.Alive == b.Alive {
			return strings.Compare(a.Name, b.Name)
		}
		if a.Alive {
			return -1
		}
		return 1
	})
	return out
}

// describe is called with n.mu held.
func (n *Node) describe(m *member, now time.Time) Member {
	info := m.info.Load()
	out := Member{
		Name:        m.name,
		Addr:        info.addr.String(),
		Service:     info.meta.Service,
		Incarnation: info.meta.Incarnation,
		Alive:       m.up.Load(),
		Since:       info.since,
	}
	for _, id := range info.meta.Secrets {
		out.Secrets = append(out.Secrets, idText(id))
	}
	out.Left = !out.Alive && m.hasLeft(info)
	r, ok := n.engine.Replica(m.name)
	if !ok {
		return out
	}
	out.Behind = r.Behind || out.Alive && r.Filter != m.inUse.Load()
	if r.Filter != nil {
		out.Version, out.Keys = r.Head.Version, r.Head.Keys
		out.FalsePositiveRate = r.Filter.FalsePositiveRate()
		out.MemoryBytes = r.Filter.MemoryBytes()
		out.Age = now.Sub(time.Unix(0, m.fresh.Load()))
	}
	return out
}

// Digest returns the digest of another peer as it is held now, verified, whether or
// not that peer is alive. ok is false if none is held.
func (n *Node) Digest(peer string) (f *digest.Filter, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.engine.Replica(peer)
	return r.Filter, ok && r.Filter != nil
}
