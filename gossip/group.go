package gossip

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// group is the membership of a node.
type group struct {
	*base
	callbacks callbacks

	ring      atomic.Pointer[secrets.Ring]
	ownSeed   bool                     // the digest seed does not follow from a secret
	accepted  atomic.Pointer[[]uint64] // seeds of digests; this peer's own first
	advertise netip.AddrPort

	transport  *transport
	acceptor   *acceptor
	memberlist *memberlist.Memberlist
	pool       pool
	meters     meters

	incarnation atomic.Uint64
	updating    chan struct{} // full while memberlist announces new metadata
	members     atomic.Pointer[memberTable]
	memberSum   atomic.Uint64 // of the names and metadata of live members and this one's
	selfSum     uint64        // this one's part of it; see sumSelf
	others      atomic.Int32  // live members
	inbox       struct {
		sync.Mutex
		members map[string]memberEvent
	}
	settings atomic.Pointer[settingSums]
	farewell [farewellKey]byte // signs this peer's farewell
	met      struct {
		sync.Mutex
		at map[string]time.Time // when member lists were merged lately, by address
	}
	joined sync.Once // starts rejoinLoop
	// joinsRefused counts the attempts to join that other peers refused.
	joinsRefused  atomic.Int64
	refused       refused
	otherClusters otherClusters
	unheard       unheard
	seeds         atomic.Pointer[[]*seed]
}

// callbacks are what membership calls of the parts above it. None of these functions waits.
type callbacks struct {
	datagram func(b []byte) // of the exchange
	// of the exchange, or a reply to one
	question func(b []byte, from netip.AddrPort)
	removal  func(b []byte)                                                         // a datagram of removals
	answer   func(w *conn, peer string, t exchange.FrameType, payload []byte) error // a request by stream
	sum      func() uint32                                                          // of all that this peer knows
	compare  func(name string, sum uint32)                                          // the sum of another peer
	agreed   func() (at time.Time, odd string)                                      // see host.agreed
	wake     func()                                                                 // members have arrived
}

func newGroup(b *base, advertise netip.AddrPort) *group {
	g := &group{base: b, advertise: advertise, updating: make(chan struct{}, 1)}
	g.seeds.Store(g.seedsOf(b.cfg.Join))
	g.ring.Store(b.cfg.ring)
	g.ownSeed = !slices.ContainsFunc(b.cfg.ring.Secrets, func(s *secrets.Secret) bool { return s.Seed == b.cfg.seed })
	seeds := g.seedsUnder(b.cfg.ring)
	g.accepted.Store(&seeds)
	g.members.Store(&memberTable{})
	crand.Read(g.farewell[:])
	g.settings.Store(sumsOfSettings(b.cfg.Settings))
	g.inbox.members = make(map[string]memberEvent)
	g.met.at = make(map[string]time.Time)
	g.incarnation.Store(exchange.NewIncarnation(time.Now(), rand.Uint64()))
	return g
}

func (g *group) start() (err error) {
	g.work.Go(g.transport.readPackets)
	if g.memberlist, err = memberlist.Create(g.memberlistConfig()); err != nil {
		g.transport.Shutdown()
		return err
	}
	g.work.Go(g.acceptor.loop)
	g.sumSelf()
	g.work.Go(g.listLoop)
	secret := g.ring.Load().Stream != nil
	if bound := guard.AddrOf(g.transport.packets.LocalAddr()); !secret && !bound.IsLoopback() {
		g.log.Warn("no secret is set: everybody who reaches this address can join and read everything", "addr", bound)
	}
	g.log.Info("gossip is up", "addr", g.advertise, "incarnation", fmt.Sprintf("%x", g.incarnation.Load()),
		"secret", secret)
	return nil
}

// nameKept is how long no other address can take the name of a dead peer. A name of a peer that left
// is free at once.
const nameKept = 10 * time.Second

// gossipTo is to how many peers a message about members goes at a time, except for those that it reached with a probe.
const gossipTo = 15

// suspicionMost is how many times as long a suspicion lasts that no other peer confirms.
const suspicionMost = 2

func (g *group) memberlistConfig() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = g.cfg.Name
	c.Transport = g.transport
	c.Label = guard.LabelOf(g.cfg.Cluster)
	c.UDPBufferSize -= secrets.SealBytes // packets are sealed by the transport, streams by TLS
	c.BindAddr, c.BindPort = g.advertise.Addr().String(), int(g.advertise.Port())
	c.AdvertiseAddr, c.AdvertisePort = c.BindAddr, c.BindPort
	c.PushPullInterval = 0      // see listLoop
	c.EnableCompression = false // the screen drops compressed messages
	// When it probes too, so that a peer at rest wakes once. To more peers than by default, 3 each 200 ms, a message
	// goes at once, as often in all.
	c.GossipInterval, c.GossipNodes = g.cfg.detect.probe, gossipTo
	c.ProbeInterval = g.cfg.detect.probe
	c.ProbeTimeout = g.cfg.detect.timeout
	c.SuspicionMult = g.cfg.detect.suspicion
	c.SuspicionMaxTimeoutMult = suspicionMost
	c.DeadNodeReclaimTime = nameKept
	c.Delegate, c.Events, c.Conflict, c.Alive, c.Ping = delegate{g}, delegate{g}, delegate{g}, delegate{g}, delegate{g}
	c.Logger = memberlistLogger(g.log)
	return c
}

// updateMetadata makes memberlist announce this node's metadata. Two concurrent calls could announce
// the older metadata under the greater incarnation, permanently.
func (g *group) updateMetadata() {
	g.updating <- struct{}{} // a mutex would stop the clock of a test in virtual time
	defer func() { <-g.updating }()
	g.transport.screen.Updates()
	_ = g.memberlist.UpdateNode(time.Second) // peers that miss it learn it by an exchange of member lists
}

// leave calls memberlist's Leave, and returns early if no member is left, as when a whole cluster is stopped. memberlist
// would wait until its timeout. Its message goes along with probes that are sent for its sake: gossip takes its time.
func (g *group) leave(wait time.Duration) error {
	told := make(chan error, 1)
	go func() { told <- g.memberlist.Leave(wait) }() // ends after wait at the latest
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-told:
			return err
		case <-look.C:
			others := g.memberlist.Members() // this peer has left
			if len(others) == 0 {
				return nil
			}
			for range leaveTo {
				to := others[rand.IntN(len(others))]
				go g.memberlist.Ping(to.Name, &net.UDPAddr{IP: to.Addr, Port: int(to.Port)}) // ends when its answer is late
			}
		}
	}
}

// leaveTo is to how many peers the message of a leave goes at a time.
const leaveTo = 3

// sendRemoval sends a datagram of removals to a member.
func (g *group) sendRemoval(to string, b []byte) {
	if m := (*g.members.Load())[to]; m != nil && g.transport.write(b, m.info.Load().addr) == nil {
		g.meters.out.packet(kindInvalidations, len(b))
	}
}

// recall sends a recall of removals to a member, and returns the logs in its answer.
func (g *group) recall(name string, frame []byte) ([]byte, error) {
	addr, ok := g.addressOf(name)
	if !ok {
		return nil, ErrUnreachable
	}
	t, logs, err := g.request(name, addr, frame, nil)
	if err == nil && t != exchange.FrameLogs {
		err = fmt.Errorf("%w: %v in answer to recall", exchange.ErrMalformed, t)
	}
	return logs, err
}
