package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/accesslog"
	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/control"
	"github.com/summarycache/summarycache/cmd/peer/internal/health"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/limitlog"
	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Options say how a node is to run.
type Options struct {
	Config  config.Config
	Budget  *budget.Budget // of the process's memory; nil = one without a limit
	Version string         // of the program, for display
	Logger  *slog.Logger   // nil = discard
	Network gossip.Network // makes the sockets; nil = the system's
	// Listeners are open already, by the names of their settings: listen, admin, https.
	Listeners map[string]net.Listener
	// Continues says that Listeners are those of the same peer's former program: balancers take this peer for ready.
	Continues bool
	// HangLimit is the time without progress after which a part that has work counts as
	// hanging; 0 = 10 s.
	HangLimit time.Duration
	// Squids says how often the digests of Squids are fetched; its other fields are filled
	// in from the configuration.
	Squids squid.Config
	FS     diskstore.FS     // under the store; nil = the system's
	Now    func() time.Time // the wall clock of store and cache, which may jump; nil = time.Now
	Stdout io.Writer        // for an access log on standard output; nil = os.Stdout
	// Reread reads the configuration again for [Node.Reload]; nil = there is none to read.
	Reread func(dryRun bool) (admin.ReloadReport, error)
	// Accepts says for [Node.Replace] whether the program file can continue; nil = none can.
	Accepts func(context.Context) (program string, err error)
}

// A Node is a running peer. It is safe for concurrent use.
type Node struct {
	o       Options                       // as given
	cfg     atomic.Pointer[config.Config] // see config
	reload  sync.Mutex                    // held during a reload
	reloads atomic.Pointer[admin.Attempt]

	upgrades atomic.Pointer[admin.Attempt]
	replaced chan struct{} // see Replaced

	log     *slog.Logger
	budget  *budget.Budget
	shares  conn.Shares
	started time.Time
	state   atomic.Pointer[string]

	sockets        map[string]net.Listener // by setting, as the system has them
	traffic, admin net.Listener
	socket         net.Listener // the operator's; nil = none
	session        string       // a token for browsers, of this process
	gates          struct{ clients, admin *conn.Gate }
	https          *httpsListener // nil = none
	servers        []*http.Server // all, in the order in which they are stopped
	clients        []*http.Server // those of clients
	serving        sync.WaitGroup
	failure        chan error

	holdings    *gossip.Holdings         // the keys of the listed objects
	secret      atomic.Pointer[[][]byte] // see secrets
	gossip      *gossip.Node
	gossips     atomic.Pointer[gossip.Node] // for what begins before it, as checks of origins
	proxy       *proxy.Handler
	siblings    *locator
	invalidator *invalidator
	removing    sync.Mutex     // held during a purge
	joined      chan struct{}  // closed when joining the cluster has succeeded or failed
	health      sibling.Health // of the other peers and the Squids
	peers       transport      // to the other peers
	coalescer   peering.Coalescer
	roster      *roster
	control     *control.Control
	squids      *squid.Neighbours
	forSquids   *squid.Publisher
	tracing     tracing.Tracer
	access      atomic.Pointer[accesslog.Log] // nil = none
	durations   *admin.Durations
	past        admin.Past
	history     admin.History
	events      *admin.Events // the last lines of the log
	watchdog    *health.Watchdog
	lateness    *health.Lateness
	troubles    troubles
	readings    readings
	cluster     clusterView
	lastTraces  time.Duration // how long sending them may take when the node stops
	stopped     chan struct{} // closed when the node stops
	stop        sync.Once
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

// Start assembles a peer, reloads its store, serves, and joins the cluster. If the system refuses
// several things, such as ports and the store's directory, the error names them all. Start fails
// if the cluster refuses this peer, and not if no other peer can be reached. ctx bounds the start and is not used after
// it.
func Start(ctx context.Context, o Options) (*Node, error) {
	n := assemble(o)
	if err := n.acquire(); err != nil {
		n.release()
		return nil, err
	}
	n.warn()
	if o.Network == nil {
		n.openSocket()
	}
	n.watchParts()
	n.serve()
	err := n.join(ctx)
	close(n.joined)
	if err != nil {
		n.Close()
		return nil, err
	}
	n.enter(serving)
	return n, nil
}

// assemble makes a node that has opened nothing yet.
func assemble(o Options) *Node {
	n := &Node{
		o: o, log: o.Logger, budget: o.Budget, started: time.Now(),
		failure: make(chan error, 4), replaced: make(chan struct{}, 1), session: rand.Text(), sockets: make(map[string]net.Listener),
		durations: admin.NewDurations(), stopped: make(chan struct{}), joined: make(chan struct{}),
		watchdog: health.NewWatchdog(cmp.Or(o.HangLimit, hangLimit)), lateness: health.NewLateness(), lastTraces: 5 * time.Second,
	}
	n.configure(o.Config)
	if n.o.Stdout == nil {
		n.o.Stdout = os.Stdout
	}
	n.reloads.Store(&admin.Attempt{At: n.started, Good: n.started})
	n.upgrades.Store(n.reloads.Load())
	if n.budget == nil {
		n.budget = budget.New(math.MaxInt64)
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	n.events = admin.NewEvents()
	n.log = slog.New(limitlog.New(slog.NewMultiHandler(n.log.Handler(), n.events)))
	n.enter(starting)
	return n
}

// warn logs settings that are allowed but rarely intended.
func (n *Node) warn() {
	if n.config().SecretShared {
		n.log.Warn("every user of this machine can read the secret: chmod o= its file")
	}
	if a, err := netip.ParseAddrPort(n.admin.Addr().String()); err == nil && !a.Addr().IsLoopback() {
		n.log.Warn("the admin listener is open to the network: everybody who reaches it can read everything", "admin",
			a)
	}
	if a, err := netip.ParseAddrPort(n.traffic.Addr().String()); err == nil && !a.Addr().IsLoopback() && !n.config().Reverse() {
		n.log.Warn("the forward proxy is open to the network: --proxy-client reach whatever this machine reaches",
			"listen", a, "proxy-client", n.config().ProxyClients)
	}
}

func (n *Node) enter(state string) { n.state.Store(&state) }

// serve begins to answer on both listeners.
func (n *Node) serve() {
	n.gates.clients.OnUnread(n.proxy.Unread)
	answers := n.closeWhileDraining(n.control.Handler(n.handleCommand, n.waitUntilJoined(n.proxy)))
	clients := n.serveOn(n.traffic, n.gates.clients.Requests(answers), func(s *http.Server) error {
		if n.config().PeerTLS == nil {
			s.ConnContext = n.serveDirectly
		}
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		return s.Serve(n.traffic)
	})
	n.clients = append(n.clients, clients)
	n.serveOn(n.admin, admin.Handler(n, n.durations, n.adminAccess), func(s *http.Server) error { return s.Serve(n.admin) })
	if n.https != nil {
		h := n.gates.clients.Requests(n.closeWhileDraining(n.waitUntilJoined(n.proxy)))
		n.clients = append(n.clients, n.serveOn(n.https, h, n.https.serve))
	}
	if n.socket != nil {
		commands := admin.Handler(n, n.durations, n.socketAccess)
		n.serveOn(n.socket, commands, func(s *http.Server) error { return s.Serve(n.socket) })
	}
	n.every(admin.HistoryStep, func() { n.history.Add(admin.SampleOf(n.Status())) })
	n.every(time.Second, n.watchdog.Tick, n.hangReporter(), n.shortageReporter())
	n.serving.Go(func() { n.lateness.Run(n.stopped) })
}

// serveDirectly has plain requests on a connection served without the server. They have no body, so none is of package
// control.
func (n *Node) serveDirectly(ctx context.Context, c net.Conn) context.Context {
	ctx = conn.Context(ctx, c)
	conn.Quickly(ctx, n.proxy, func() bool {
		select {
		case <-n.joined:
			return *n.state.Load() == serving // see closeWhileDraining
		default: // see waitUntilJoined
			return false
		}
	})
	return ctx
}

// closeWhileDraining has each answer of a peer that is about to stop say that its connection ends, so that no client
// begins a request on it at the moment when it is closed. HTTP/2 has GOAWAY for that, which net/http makes of the same field.
func (n *Node) closeWhileDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if *n.state.Load() == draining {
			w.Header().Set("Connection", "close")
			r.Close = true // as if the client had asked for it: then nothing is answered past the server
		}
		next.ServeHTTP(w, r)
	})
}

// every calls all of fs now and at each multiple of a pause, until the node stops.
func (n *Node) every(pause time.Duration, fs ...func()) {
	n.serving.Go(func() {
		for {
			for _, f := range fs {
				f()
			}
			select {
			case <-time.After(n.lateness.Until(pause)):
			case <-n.stopped:
				return
			}
		}
	})
}

// joinedWait is how long requests wait, at most, until this peer has joined.
const joinedWait = 2 * time.Second

// waitUntilJoined delays requests until this peer has joined the cluster: from then on it knows which
// of its objects were invalidated while it was away.
func (n *Node) waitUntilJoined(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-n.joined:
		default:
			late := time.NewTimer(joinedWait)
			select {
			case <-n.joined:
			case <-late.C:
			case <-r.Context().Done():
			}
			late.Stop()
		}
		next.ServeHTTP(w, r)
	})
}

func (n *Node) serveOn(l net.Listener, h http.Handler, serve func(*http.Server) error) *http.Server {
	server := &http.Server{
		Handler: withBodyDeadline(h, func() time.Duration { return n.config().ClientBodyTimeout }), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		// of siblings, too: package proxy has the limit for clients
		MaxHeaderBytes: max(64<<10, 2*int(n.config().MaxHeaderSize)),
		HTTP2: conn.HTTP2(n.budget, func(how string) {
			n.log.Info("a client broke the rules of HTTP/2: its stream or connection was ended", "how", how)
		}),
		ConnContext: conn.Context,
		ConnState:   func(c net.Conn, s http.ConnState) { conn.Idle(c, s == http.StateNew || s == http.StateIdle) },
		ErrorLog:    slog.NewLogLogger(n.log.Handler(), slog.LevelDebug),
	}
	n.servers = append(n.servers, server)
	n.serving.Go(func() {
		if err := serve(server); !errors.Is(err, http.ErrServerClosed) {
			n.failure <- fmt.Errorf("listener %s failed: %w", l.Addr(), err)
		}
	})
	return server
}

// Log returns the node's log, which is bounded and whose last lines are the node's events.
func (n *Node) Log() *slog.Logger { return n.log }

// Failed receives the error of a listener that failed. The rest of the node goes on until it is
// shut down.
func (n *Node) Failed() <-chan error { return n.failure }

// Addresses returns where the node listens.
func (n *Node) Addresses() admin.Addresses {
	a := admin.Addresses{
		Listen: n.traffic.Addr().String(), Admin: n.admin.Addr().String(), Gossip: n.gossip.Addr(), Service: n.service(),
	}
	if n.https != nil {
		a.HTTPS = n.https.Addr().String()
	}
	if n.socket != nil {
		a.Socket = n.socket.Addr().String()
	}
	return a
}

// Retire has the peer say that it is not ready, and each answer that its connection ends. Everything else goes on.
func (n *Node) Retire() { n.enter(draining) }

// Shutdown leaves the cluster, waits for the requests under way as long as ctx allows, and stops.
func (n *Node) Shutdown(ctx context.Context) error {
	n.Retire()
	leave := n.gossip.Leave(ctx)
	drain := n.drain(ctx)
	if leave != nil {
		n.log.Warn("leaving the cluster did not complete", "err", leave)
	}
	return errors.Join(drain, n.Close())
}

// handOverWait is how long requests under way may take while others wait for the next program: those that began a moment
// before, of which nobody knows how long they take. To wait is better than to be cut.
const handOverWait = time.Second

// Sockets returns the listening sockets, by their settings.
func (n *Node) Sockets() map[string]net.Listener { return n.sockets }

// HandOver stops the node for a program that continues with its name, store and sockets at once. New connections wait
// in the sockets meanwhile, and the other peers are not told. It goes on to serve until no request takes long, or ctx
// ends, and then waits for handOverWait at most.
func (n *Node) HandOver(ctx context.Context) error {
	n.gates.clients.Calm(ctx)
	ctx, cancel := context.WithTimeout(context.Background(), handOverWait)
	defer cancel()
	if err := n.drain(ctx); err != nil {
		n.log.Warn("the next program does not wait for all requests", "err", err)
	}
	n.gates.admin.Hold(ctx)
	for _, s := range n.servers {
		s.Shutdown(ctx) // after the answer to the command that asked for this, if one did
	}
	n.lastTraces = handOverWait
	return n.Close()
}

// drain accepts no further connection, and waits for the requests under way.
func (n *Node) drain(ctx context.Context) error {
	n.gates.clients.Hold(ctx)
	n.gates.clients.CloseUnused()
	var errs []error
	for _, s := range n.clients {
		errs = append(errs, s.Shutdown(ctx))
	}
	n.gates.clients.Drain(ctx)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("requests under way were cut off: %w", err)
	}
	return nil
}

// Close stops the node at once. To the other peers this looks like a crash.
func (n *Node) Close() (err error) {
	n.stop.Do(func() { err = n.release() })
	return err
}

// release closes everything that acquire and serve have opened: each part before those that it
// uses.
func (n *Node) release() error {
	close(n.stopped)
	n.watchdog.Close()
	var errs []error
	for _, s := range n.servers {
		errs = append(errs, s.Close())
	}
	if n.servers == nil {
		listeners := []net.Listener{n.traffic, n.admin}
		if n.https != nil {
			listeners = append(listeners, n.https)
		}
		for _, l := range listeners {
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
	if access := n.access.Load(); access != nil {
		errs = append(errs, access.Close())
	}
	if n.peers != nil {
		n.peers.CloseIdleConnections()
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.lastTraces)
	defer cancel()
	if err := n.tracing.Close(ctx); err != nil {
		n.log.Warn("the last traces are lost", "err", err)
	}
	return errors.Join(errs...)
}
