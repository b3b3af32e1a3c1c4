package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/control"
	"github.com/summarycache/summarycache/cmd/peer/internal/crowd"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Options say how a node is to run.
type Options struct {
	Config  config.Config
	Version string           // of the program, for display
	Logger  *slog.Logger     // nil = discard
	Network gossip.Network   // where sockets come from; nil = the system's
	Detect  gossip.Detection // how soon a dead peer is noticed; zero = gossip's defaults
	// Squids says how soon the digests of Squids are fetched again; the rest of it
	// comes from the other fields.
	Squids squid.Config
	// Observe, if not nil, is called for every request; see [proxy.Config].
	Observe func(proxy.Event)
}

// A Node is a running peer. It is safe for concurrent use.
type Node struct {
	cfg     config.Config
	version string
	log     *slog.Logger
	quiet   *quiet
	started time.Time
	state   atomic.Pointer[string]

	traffic, admin net.Listener
	servers        []*http.Server // in the order in which they are stopped
	serving        sync.WaitGroup
	failure        chan error

	holdings  *gossip.Holdings // what the store lists, in the digest
	shape     shape
	secret    atomic.Pointer[[][]byte] // see secrets
	gossip    *gossip.Node
	proxy     *proxy.Handler
	siblings  *locator
	peers     transport // to the other peers
	crowd     *crowd.Crowd
	control   *control.Control
	squids    *squid.Neighbours // nil = none
	forSquids *squid.Publisher  // nil = no Squids
	tracing   *tracing.Tracer   // nil = off
	durations *admin.Durations
	history   admin.History
	cluster   clusterView
	stopped   chan struct{} // closed when the node stops
	stop      sync.Once
}

// A transport carries requests to other peers.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

const (
	starting = "starting"
	serving  = "serving"
	draining = "draining"
)

// Start assembles a peer, reloads its store, serves, and joins the cluster. What
// can't be had of the system, a port or the store's directory, is reported all at
// once. A cluster that can't be reached is no error unless the configuration
// limits the wait for it; one that refuses this peer is. ctx bounds the start and
// is not used after it.
func Start(ctx context.Context, o Options) (*Node, error) {
	n := &Node{
		cfg: o.Config, version: o.Version, log: o.Logger, started: time.Now(),
		failure: make(chan error, 2), durations: admin.NewDurations(), stopped: make(chan struct{}),
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	n.quiet = &quiet{log: n.log}
	n.enter(starting)
	if err := n.acquire(o); err != nil {
		n.release()
		return nil, err
	}
	n.warn()
	n.serve()
	if err := n.join(ctx); err != nil {
		n.Close()
		return nil, err
	}
	n.enter(serving)
	return n, nil
}

// warn tells of what is allowed and seldom meant.
func (n *Node) warn() {
	if a, err := netip.ParseAddrPort(n.admin.Addr().String()); err == nil && !a.Addr().IsLoopback() {
		n.log.Warn("the admin listener is open to the network: whoever reaches it sees everything", "admin", a)
	}
	if a, err := netip.ParseAddrPort(n.traffic.Addr().String()); err == nil && !a.Addr().IsLoopback() && n.cfg.Origin == nil {
		n.log.Warn("a forward proxy open to the network: whoever reaches it can use it, and reach what this machine does", "listen", a)
	}
}

func (n *Node) enter(state string) { n.state.Store(&state) }

// acquire takes everything that a peer needs of the system and reports all that
// it could not have.
func (n *Node) acquire(o Options) error {
	if err := n.shapeDigest(); err != nil {
		return err
	}
	if err := n.trace(); err != nil {
		return err
	}
	n.useSecrets(n.cfg)
	listen := net.Listen
	if o.Network != nil {
		listen = func(_, addr string) (net.Listener, error) { return o.Network.Listen(addr) }
	}
	var errs []error
	var err error
	n.traffic, err = listen("tcp", n.cfg.Listen)
	errs = append(errs, inUse("--listen", n.cfg.Listen, err))
	if err == nil {
		n.traffic = conn.Listen(n.traffic)
	}
	if err == nil && n.cfg.PeerTLS != nil {
		n.traffic = peertls.Listen(n.traffic, n.cfg.PeerTLS)
	}
	n.admin, err = listen("tcp", n.cfg.Admin)
	errs = append(errs, inUse("--admin", n.cfg.Admin, err))
	n.siblings = &locator{}
	if n.proxy, err = proxy.New(n.proxyConfig(o)); err != nil {
		errs = append(errs, fmt.Errorf("--store: %s", strings.TrimPrefix(err.Error(), "store: ")))
	} else {
		n.replan() // for what the store holds already
	}
	if n.gossip, err = gossip.New(n.gossipConfig(o)); err != nil {
		if errors.Is(err, gossip.ErrStateFile) {
			errs = append(errs, fmt.Errorf("--digests %s: %w", n.cfg.Digests, err))
		} else {
			errs = append(errs, inUse("--gossip", n.cfg.Gossip, err))
		}
	}
	n.siblings.Locator = sibling.Digests(n.gossip)
	n.control = control.New(n.cfg.Name, n.secrets)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	n.squids = n.neighbours(o)
	n.siblings.squids = n.squids
	return nil
}

// proxyConfig has the keys of the objects that the proxy lists enter the digest,
// those that it finds in its store at once.
func (n *Node) proxyConfig(o Options) proxy.Config {
	c := proxy.Config{
		Name: n.cfg.Name, Origin: n.cfg.Origin, Locator: n.siblings,
		Store: store.Options{
			Dir: n.cfg.Store, MaxBytes: n.cfg.StoreSize, MemoryBytes: n.cfg.MemorySize,
			Hooks: store.Hooks{
				Listed:   n.holdings.Add,
				Unlisted: func(identity string) { n.holdings.Remove(identity) },
			},
			Logger: n.log,
		},
		Own:     n.ownPaths(),
		Admit:   (&roster{members: n.others, secure: n.cfg.PeerTLS != nil, quiet: n.quiet}).admit,
		Observe: n.durations.Observe,
		Tracing: n.tracing,
		Logger:  n.log,
	}
	if o.Observe != nil {
		c.Observe = func(e proxy.Event) { n.durations.Observe(e); o.Observe(e) }
	}
	c.Dial = n.dial(o)
	n.peers = outspoken{sibling.NewHTTPTransport(c.Dial), n.quiet}
	if n.cfg.PeerTLS != nil {
		n.peers = outspoken{peertls.NewTransport(n.cfg.PeerTLS, c.Dial), n.quiet}
	}
	c.SiblingTransport = n.peers
	n.crowd = crowd.New(crowd.Config{Name: n.cfg.Name, Others: n.living, Key: n.crowdKey, HTTP: n.peers, Wait: n.cfg.CollapseWait, Admit: c.Admit})
	c.Own[crowd.Path] = n.crowd
	if n.cfg.CollapseWait > 0 {
		c.Crowd = n.crowd
	}
	return c
}

// dial returns how the peer connects to others for HTTP.
func (n *Node) dial(o Options) dialFunc {
	dial := (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	if o.Network != nil {
		dial = func(ctx context.Context, _, addr string) (net.Conn, error) { return o.Network.Dial(ctx, addr) }
	}
	if n.admin != nil {
		return guarded(dial, n.admin.Addr())
	}
	return dial
}

func (n *Node) gossipConfig(o Options) gossip.Config {
	return gossip.Config{
		Name: n.cfg.Name, Bind: n.cfg.Gossip, Advertise: n.cfg.Advertise, Join: n.cfg.Join,
		Secret: n.cfg.Secret, AcceptSecrets: n.cfg.AcceptSecrets,
		Service: n.service(), Holdings: n.holdings, Publish: publishing(n.cfg.Publish),
		StateFile: n.digests(), Limits: gossip.Limits{IndexBytes: int(min(n.cfg.IndexSize, math.MaxInt))},
		Detection: o.Detect, Network: o.Network, Logger: n.log,
	}
}

// digests is the file of those that outlive the process; "" if there is no store, and
// so perhaps no directory either.
func (n *Node) digests() string {
	if n.proxy == nil {
		return ""
	}
	return n.cfg.Digests
}

// others are the other members of the cluster.
func (n *Node) others() []gossip.Member { return n.gossip.Members() }

// living are those of them that can be asked.
func (n *Node) living() (list []crowd.Member) {
	for _, m := range n.gossip.Members() {
		if m.Alive && m.Service != "" {
			list = append(list, crowd.Member{Name: m.Name, Addr: m.Service})
		}
	}
	return list
}

// crowdKey is what stands for an object among those who fetch it.
func (n *Node) crowdKey(identity string) uint64 {
	return uint64(digest.KeyOfString(n.holdings.Filter().Geometry().Seed, identity))
}

// service is where the others ask this peer.
func (n *Node) service() string {
	if n.traffic == nil {
		return ""
	}
	addr := n.traffic.Addr().String()
	if n.cfg.Advertise == "" {
		return addr
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(n.cfg.Advertise, port)
}

// serve begins to answer on both listeners.
func (n *Node) serve() {
	n.serveOn(n.traffic, n.control.Handler(n.obey, n.proxy))
	n.serveOn(n.admin, admin.Handler(n, n.durations))
	n.serving.Go(n.record)
	n.serving.Go(n.watchPlan)
	if n.cfg.PeerTLS != nil {
		n.serving.Go(n.watchCertificate)
	}
}

func (n *Node) serveOn(l net.Listener, h http.Handler) {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: conn.Context,
		ErrorLog:    slog.NewLogLogger(n.log.Handler(), slog.LevelDebug),
	}
	n.servers = append(n.servers, server)
	n.serving.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			n.failure <- fmt.Errorf("listener %s failed: %w", l.Addr(), err)
		}
	})
}

// Failed receives the error of a listener that broke down. A node that fails
// goes on as well as it can until it is shut down.
func (n *Node) Failed() <-chan error { return n.failure }

// Addresses returns where the node listens.
func (n *Node) Addresses() admin.Addresses {
	return admin.Addresses{
		Listen: n.traffic.Addr().String(), Admin: n.admin.Addr().String(), Gossip: n.gossip.Addr(), Service: n.service(),
	}
}

// Shutdown takes its leave of the cluster, waits for the requests under way as
// long as ctx allows, and stops.
func (n *Node) Shutdown(ctx context.Context) error {
	n.enter(draining)
	leave := n.gossip.Leave(ctx)
	drain := n.servers[0].Shutdown(ctx)
	if drain != nil {
		drain = fmt.Errorf("requests under way were cut off: %w", drain)
	}
	if leave != nil {
		n.log.Warn("could not take leave of the cluster", "err", leave)
	}
	return errors.Join(drain, n.Close())
}

// Close stops at once. To the other peers it looks like a death.
func (n *Node) Close() (err error) {
	n.stop.Do(func() { err = n.release() })
	return err
}

// release gives back what was acquired, in the order in which one part uses
// another.
func (n *Node) release() error {
	close(n.stopped)
	var errs []error
	for _, s := range n.servers {
		errs = append(errs, s.Close())
	}
	if n.servers == nil {
		for _, l := range []net.Listener{n.traffic, n.admin} {
			if l != nil {
				errs = append(errs, l.Close())
			}
		}
	}
	n.serving.Wait()
	if n.squids != nil {
		n.squids.Close()
	}
	if n.gossip != nil {
		errs = append(errs, n.gossip.Close())
	}
	if n.proxy != nil {
		errs = append(errs, n.proxy.Close())
	}
	if n.peers != nil {
		n.peers.CloseIdleConnections()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
	defer cancel()
	if err := n.tracing.Close(ctx); err != nil {
		n.log.Warn("the last traces are lost", "err", err)
	}
	return errors.Join(errs...)
}
