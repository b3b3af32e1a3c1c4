package gossip

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// Member is the state of another peer.
type Member struct {
	Name        string
	Addr        string   // of gossip, ip:port
	Service     string   // host:port where it answers siblings; may be empty
	Zone        string   // where it runs; may be empty
	Light       bool     // it keeps no digests of others
	Secrets     []string // names of the secrets that it accepts, the one that it uses first; nil if it has none
	Incarnation uint64   // of its present life
	Alive       bool
	Left        bool      // it is not alive because it left; false if it died
	Since       time.Time // when Alive last changed
	// whether it hears this peer, while it is alive: "yes", "streams only" (packets are lost), "others only" (nothing
	// arrives), "no"; "" = it has not said yet
	Hears string

	// Of its digest; zero values if none is held.
	Version           exchange.Version
	Keys              uint64
	FalsePositiveRate float64
	Age               time.Duration // since it was last known to be current
	MemoryBytes       int           // of the replica
	Behind            bool          // a newer version is known to exist, or none is held yet
}

// member is the node's state for another peer. It is kept for a day after the peer's death, so that
// the peer can be found again.
type member struct {
	name  string
	id    exchange.ID
	fresh atomic.Int64 // Unix nanoseconds when its digest was last known to be current

	inUse atomic.Pointer[digest.Filter] // the filter that lookups use; nil if none

	// Replaced as a whole by the node's loop.
	info atomic.Pointer[memberInfo]
	// up is cleared by memberlist's callback itself, before the loop handles the event: a dead peer
	// is no candidate from that moment.
	up atomic.Bool
	// doubtful is until when it is no candidate, in Unix nanoseconds, although it is alive; see
	// doubtfulFor.
	doubtful atomic.Int64
	// knows is set when the peer has confirmed that it counts this one as alive, and cleared when the
	// peer dies.
	knows  atomic.Bool
	deaf   signs    // welcomes in which it does not
	mute   [2]signs // probes that come by streams only: its own, and this peer's
	astray signs    // it does not answer, and others are asked whether it lives
	// checked is when the peer was last checked, in Unix nanoseconds.
	checked atomic.Int64
	// left is the incarnation in whose farewell the peer announced that it would leave; 0 if none.
	left atomic.Uint64
}

// hasLeft reports whether the peer has announced, in the incarnation of info, that it would leave.
func (m *member) hasLeft(info *memberInfo) bool { return m.left.Load() == info.meta.Incarnation }

// memberInfo is the last state of a peer that the node's loop has taken.
type memberInfo struct {
	memberEvent
	meta  exchange.Meta
	since time.Time // when the peer's state or incarnation last changed
	sum   uint64    // of name and metadata
}

// memberTable has all members by name. Lookups read it without a lock; it is replaced when a member
// is added or forgotten.
type memberTable map[string]*member

// memberEvent is the latest state of a peer, which memberlist's callbacks queue for the node's loop.
type memberEvent struct {
	name     string
	addr     netip.AddrPort
	metadata []byte
	up       bool
}

// Members returns all other known peers, those alive first, each group by name.
func (n *Node) Members() []Member {
	table := *n.made().members.Load()
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

// describe returns the state of a member. It is called with n.mu held.
func (h *host) describe(m *member, now time.Time) Member {
	info := m.info.Load()
	out := Member{
		Name:        m.name,
		Addr:        info.addr.String(),
		Service:     info.meta.Service,
		Zone:        info.meta.Zone,
		Light:       info.meta.Light,
		Incarnation: info.meta.Incarnation,
		Alive:       m.up.Load(),
		Since:       info.since,
	}
	for _, id := range info.meta.Secrets {
		out.Secrets = append(out.Secrets, secrets.Text(id))
	}
	if out.Alive {
		out.Hears = m.hearing().String()
	}
	out.Left = !out.Alive && m.hasLeft(info)
	r, ok := h.engine.Replica(m.name)
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

// Digest returns the replica of another peer's digest, whether the peer is alive or not. ok is false
// if there is none.
func (n inside) Digest(peer string) (f *digest.Filter, ok bool) {
	n.made().mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.engine.Replica(peer)
	return r.Filter, ok && r.Filter != nil
}

// Doubt says that a peer did not answer, as a request over HTTP or of another member. The next probe of it is
// then sent, even if the peer has just proven that it lives.
func (n *Node) Doubt(peer string) { n.made().doubt(peer) }

func (g *group) doubt(peer string) {
	if m := (*g.members.Load())[peer]; m != nil {
		g.transport.life.Doubt(m.info.Load().addr)
	}
}

// known shows the members to the screen.
type known struct{ g *group }

func (k known) Count() int { return len(*k.g.members.Load()) }

func (k known) Sums(n int) []uint32 {
	sums := make([]uint32, n)
	sums[guard.RangeOf(exchange.IDOf(k.g.cfg.Name), n)] = uint32(memberSum(k.g.cfg.Name, delegate(k).NodeMeta(0)))
	for _, m := range k.g.liveMembers() {
		sums[guard.RangeOf(m.id, n)] += uint32(m.info.Load().sum)
	}
	return sums
}

func (k known) Known(name string) (guard.Known, bool) {
	m := (*k.g.members.Load())[name]
	if m == nil {
		return guard.Known{}, false
	}
	info := m.info.Load()
	return guard.Known{Addr: info.addr, Up: m.up.Load(), Left: m.hasLeft(info), Since: info.since}, true
}

// One member is checked at most once per checkEvery, and mostChecks at once.
const (
	checkEvery = 3 * time.Second
	mostChecks = 32
)

// check probes a member that another one suspects. If it does not answer, this peer suspects it too: a suspicion
// that others confirm is shorter, and memberlist would probe the member only when its turn comes.
func (g *group) check(name string, incarnation uint64) {
	g.doubt(name)
	m, now := g.live(name), time.Now().UnixNano()
	if m == nil || now-m.checked.Load() < int64(checkEvery) {
		return
	}
	checking := &g.transport.checking
	if checking.Add(1) > mostChecks {
		checking.Add(-1)
		return
	}
	m.checked.Store(now)
	g.work.Go(func() {
		defer checking.Add(-1)
		_, err := g.memberlist.Ping(name, net.UDPAddrFromAddrPort(m.info.Load().addr))
		if err != nil && g.ctx.Err() == nil {
			g.transport.admit(guard.Pack(guard.MsgSuspect, "Incarnation", uint32(incarnation), "Node", name,
				"From", g.cfg.Name))
		}
	})
}
