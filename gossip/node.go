package gossip

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// Node is a peer of the cluster. Create one with [New].
type Node struct {
	cfg          Config
	log          *slog.Logger
	ring         atomic.Pointer[secrets.Ring]
	ownSeed      bool          // the digest seed does not follow from a secret
	signs        crypto.Signer // nil if this peer does not sign
	advertise    netip.AddrPort
	digestLimits digest.Limits

	transport  *transport
	acceptor   *acceptor
	memberlist *memberlist.Memberlist
	pool       pool
	bodies     bodies
	digests    digestLedger  // of the others
	serving    chan struct{} // a place for each body being served

	index       *index.Index             // of the others' digests
	accepted    atomic.Pointer[[]uint64] // seeds of digests; this peer's own first
	rotation    sync.Mutex               // held while secrets change
	updating    chan struct{}            // full while memberlist announces new metadata
	members     atomic.Pointer[memberTable]
	incarnation atomic.Uint64
	former      *digest.Filter // this peer's digest of a former life, until publishFirst; nil if unknown
	replans     uint64         // of the holdings, as far as they are logged

	mu     sync.Mutex // guards engine
	engine *exchange.Engine

	inbox struct {
		sync.Mutex
		members map[string]memberEvent
	}
	met struct {
		sync.Mutex
		at map[string]time.Time // when member lists were merged lately, by address
	}
	datagrams chan []byte
	sum       atomic.Uint32 // of the digests and members that this peer knows
	memberSum atomic.Uint64 // of the names and metadata of live members
	others    atomic.Int32  // live members
	woken     chan struct{}
	calls     chan func() // for loop
	publisher chan func() // for publishLoop
	hooks     chan func() // for callHooks

	ctx    context.Context // ends with the node
	cancel context.CancelFunc
	wg     sync.WaitGroup
	closed sync.Once
	joined sync.Once // starts rejoinLoop
	seeds  atomic.Pointer[[]*seed]

	invalidations invalidations
	recalled      time.Time // the last recall from a peer that came back; of the loop only

	meters meters
	demand exchange.Demand
}

const (
	datagramBacklog = 1024
	hookBacklog     = 1024

	digestMemory = 256 << 20 // bytes of memory for decoding a digest
	servesMost   = 32        // bodies served at once
)

// New creates a node and opens its port. It contacts no other peer: see [Node.Join]. Its error has
// all mistakes in cfg. Close the node at the end.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	packets, listener, err := listenBoth(cfg.Network, cfg.Bind)
	if err != nil {
		return nil, fmt.Errorf("gossip: bind %s: %w", cfg.Bind, err)
	}
	advertise, err := advertised(cfg.Advertise, guard.AddrPortOf(listener.Addr()))
	var n *Node
	if err == nil {
		n = newNode(cfg, advertise)
		n.transport, n.acceptor = newTransport(n, packets), newAcceptor(n, listener)
		err = n.start()
	}
	if err != nil {
		packets.Close()
		listener.Close()
		return nil, fmt.Errorf("gossip: %w", err)
	}
	return n, nil
}

func newNode(cfg Config, advertise netip.AddrPort) *Node {
	n := &Node{
		cfg: cfg, advertise: advertise,
		log:          cfg.Logger,
		digestLimits: digest.Limits{Bytes: cfg.Limits.DigestBytes, Memory: digestMemory},
		bodies:       bodies{known: make(map[exchange.AnswerKey]func() []byte), memory: cfg.Limits.StreamMemory},
		digests:      digestLedger{memory: cfg.Limits.DigestMemory},
		index:        index.New(),
		serving:      make(chan struct{}, servesMost),
		datagrams:    make(chan []byte, datagramBacklog),
		woken:        make(chan struct{}, 1),
		calls:        make(chan func(), 16),
		publisher:    make(chan func()),
		updating:     make(chan struct{}, 1),
		hooks:        make(chan func(), hookBacklog),
	}
	n.seeds.Store(n.seedsOf(cfg.Join))
	n.ring.Store(cfg.ring)
	n.ownSeed = !slices.ContainsFunc(cfg.ring.Secrets, func(s *secrets.Secret) bool { return s.Seed == cfg.seed })
	seeds := n.seedsUnder(cfg.ring)
	n.accepted.Store(&seeds)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.members.Store(&memberTable{})
	n.inbox.members = make(map[string]memberEvent)
	n.met.at = make(map[string]time.Time)
	n.incarnation.Store(exchange.NewIncarnation(time.Now(), rand.Uint64()))
	var key ed25519.PrivateKey
	if cfg.Sign {
		_, key, _ = ed25519.GenerateKey(nil) // the system's randomness does not fail
		n.signs = key
	}
	n.engine = exchange.New(exchange.Config{
		Key:         key,
		Name:        cfg.Name,
		Incarnation: n.incarnation.Load(),
		Seed:        rand.Uint64(),
		Publish:     cfg.Publish,
		DigestBytes: cfg.Limits.DigestBytes,
	}, time.Now())
	n.invalidations.init(cfg, n.incarnation.Load(), key)
	return n
}

// start loads the state file, publishes the present contents of the filter and starts all goroutines.
func (n *Node) start() error {
	if err := n.restore(); err != nil {
		return fmt.Errorf("%w: %w", ErrStateFile, err)
	}
	if n.cfg.Holdings != nil {
		n.publishFirst()
	}
	n.transport.wg.Go(n.transport.readPackets)
	var err error
	if n.memberlist, err = memberlist.Create(n.memberlistConfig()); err != nil {
		n.transport.Shutdown()
		return err
	}
	n.acceptor.wg.Go(n.acceptor.loop)
	n.sumMembers()
	n.wg.Go(n.loop)
	n.wg.Go(n.listLoop)
	n.wg.Go(n.callHooks)
	n.wg.Go(n.invalidateLoop)
	n.wg.Go(n.applyInvalidations)
	if n.cfg.StateFile != "" {
		n.wg.Go(n.saveLoop)
	}
	if n.cfg.Holdings != nil {
		n.wg.Go(n.publishLoop)
	}
	if bound := guard.AddrOf(n.transport.packets.LocalAddr()); n.ring.Load().Stream == nil && !bound.IsLoopback() {
		n.log.Warn("no secret is set: everybody who reaches this address can join and read everything", "addr", bound)
	}
	n.log.Info("gossip is up", "addr", n.advertise, "incarnation", fmt.Sprintf("%x", n.incarnation.Load()), "secret", n.ring.Load().Stream != nil)
	return nil
}

// nameKept is how long no other address can take the name of a dead peer. A name of a peer that left
// is free at once.
const nameKept = 10 * time.Second

// suspicionMost is how many times as long a suspicion lasts that no other peer confirms.
const suspicionMost = 2

func (n *Node) memberlistConfig() *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = n.cfg.Name
	c.Transport = n.transport
	c.Label = guard.Label
	c.UDPBufferSize -= secrets.SealBytes // packets are sealed by the transport, streams by TLS
	c.BindAddr, c.BindPort = n.advertise.Addr().String(), int(n.advertise.Port())
	c.AdvertiseAddr, c.AdvertisePort = c.BindAddr, c.BindPort
	c.PushPullInterval = 0      // see listLoop
	c.EnableCompression = false // the screen drops compressed messages
	c.ProbeInterval = n.cfg.detect.probe
	c.ProbeTimeout = n.cfg.detect.timeout
	c.SuspicionMult = n.cfg.detect.suspicion
	c.SuspicionMaxTimeoutMult = suspicionMost
	c.DeadNodeReclaimTime = nameKept
	c.Delegate, c.Events, c.Conflict, c.Alive, c.Ping = delegate{n}, delegate{n}, delegate{n}, delegate{n}, delegate{n}
	c.Logger = memberlistLogger(n.log)
	return c
}

// Addr returns the address at which others reach this node, ip:port.
func (n *Node) Addr() string { return n.advertise.String() }

// Name returns the name of this peer.
func (n *Node) Name() string { return n.cfg.Name }

// Holdings returns the contents that this peer advertises: Config.Holdings, or those that New
// created for Config.Objects; nil if this peer only listens.
func (n *Node) Holdings() *Holdings { return n.cfg.Holdings }

// Leave announces to the others that this peer leaves, so that they need not detect it, and closes
// the node. It waits for the message to spread as long as ctx allows, at most five seconds.
func (n *Node) Leave(ctx context.Context) error {
	if n.ctx.Err() != nil {
		return ErrClosed
	}
	wait := 5 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline), time.Millisecond))
	}
	if !n.inLoop(n.sendFarewell) { // before memberlist's own
		return ErrClosed
	}
	err := n.leave(wait)
	return errors.Join(err, n.Close())
}

// sendFarewell sends a farewell to every live peer, including those that became members just now.
func (n *Node) sendFarewell() {
	n.takeMembers()
	n.mu.Lock()
	farewells := n.engine.Leave()
	n.mu.Unlock()
	n.send(farewells)
}

// leave calls memberlist's Leave, and returns early if no member is left, as when a whole cluster is
// stopped. memberlist would wait until its timeout.
func (n *Node) leave(wait time.Duration) error {
	told := make(chan error, 1)
	go func() { told <- n.memberlist.Leave(wait) }() // ends after wait at the latest
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-told:
			return err
		case <-look.C:
			if n.memberlist.NumMembers() == 0 { // neither this peer, which has left, nor another
				return nil
			}
		}
	}
}

// Close stops the node at once; the others see a death. It saves the state file if there is one. It
// is safe to call several times.
func (n *Node) Close() error {
	var err error
	n.closed.Do(func() {
		n.cancel()
		err = n.memberlist.Shutdown()
		n.acceptor.close()
		n.wg.Wait()
		if planted.Fault != "pool-stays-open" {
			n.pool.empty()
		}
		if n.cfg.StateFile != "" {
			if e := n.save(); e != nil {
				err = errors.Join(err, fmt.Errorf("gossip: %w: %w", ErrStateFile, e))
			}
		}
	})
	return err
}
