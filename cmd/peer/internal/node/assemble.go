package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/accesslog"
	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/control"
	"github.com/summarycache/summarycache/cmd/peer/internal/opening"
	"github.com/summarycache/summarycache/cmd/peer/internal/peertls"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// lastSpans is how long a reload waits for the former collector.
const lastSpans = 5 * time.Second

// leastForGossip is what gossip has for its own, in bytes: eight streams, as many as with the least --memory-limit.
// With one, peers that took each other for dead would not find each other again.
const leastForGossip = 8 * 24 << 10

// acquire opens files, ports and the store. It reports the errors of the last three parts together.
func (n *Node) acquire() error {
	var err error
	if n.holdings, err = gossip.PlanHoldings(n.config().Objects, n.config().FalsePositives, digest.HTTP, n.config().Secret); err != nil {
		return err
	}
	if err := n.trace(n.config()); err != nil {
		return err
	}
	access, err := n.openAccessLog(n.config())
	if err != nil {
		return err
	}
	n.access.Store(access)
	n.useSecrets(n.config())
	n.shares = conn.Share(n.config().MaxConnections, n.budget)
	n.roster = &roster{members: func() []gossip.Member { return n.gossip.Members() }, secure: n.config().PeerTLS != nil, log: n.log}
	n.control = control.New(n.config().Name, n.secrets, n.roster.member)
	n.siblings, n.invalidator = &locator{}, &invalidator{}
	n.forSquids = &squid.Publisher{Objects: n.listed, Logger: n.log}
	err = errors.Join(n.listen(), n.openStore())
	if err := errors.Join(err, n.openGossip(err == nil)); err != nil {
		return err
	}
	n.siblings.Node, n.invalidator.Node = n.gossip, n.gossip
	n.gossip.OnInvalidation(n.applied)
	n.squids = n.neighbours()
	n.siblings.Neighbours = n.squids
	return nil
}

// trace traces requests if the configuration names a collector.
func (n *Node) trace(c *config.Config) error {
	to := tracing.Config{Header: c.TraceHeader, Timeout: c.TraceTimeout, Name: c.Name, Version: n.o.Version, Logger: n.log}
	if c.Traces != nil {
		to.Endpoint = c.Traces.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	if err := n.tracing.Use(ctx, to); err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return nil
}

// openAccessLog opens the access log of a configuration; nil = it has none.
func (n *Node) openAccessLog(c *config.Config) (*accesslog.Log, error) {
	if c.AccessLog == "" {
		return nil, nil
	}
	l, err := accesslog.Open(c.AccessLog, c.AccessLogFormat == "json", n.o.Stdout, n.log)
	if err != nil {
		return nil, fmt.Errorf("--access-log: %w", err)
	}
	return l, nil
}

// listen opens the ports for clients, siblings and operators.
func (n *Node) listen() error {
	shares := n.shares
	n.gates.clients, n.gates.admin = conn.NewGate(shares.Clients), conn.NewGate(shares.Admin)
	listen := func(setting, addr string, gate *conn.Gate) (l net.Listener, err error) {
		if given := n.o.Listeners[setting]; given != nil {
			l = given
		} else if n.o.Network != nil {
			l, err = n.o.Network.Listen(addr)
		} else {
			l, err = net.Listen("tcp", addr)
		}
		if err != nil {
			return nil, inUse("--"+setting, addr, err)
		}
		n.sockets[setting] = l
		if setting != "admin" && len(n.config().ProxyProtocol) > 0 {
			l = opening.Proxied(l, func() []netip.Prefix { return n.config().ProxyProtocol }, n.log)
		}
		return conn.Listen(l, n.config().SendTimeout, gate), nil
	}
	var errTraffic, errAdmin, errHTTPS error
	n.traffic, errTraffic = listen("listen", n.config().Listen, n.gates.clients)
	n.admin, errAdmin = listen("admin", n.config().Admin, n.gates.admin)
	if errTraffic == nil && n.config().PeerTLS != nil {
		n.traffic = peertls.Listen(n.traffic, n.config().PeerTLS)
	}
	if n.config().HTTPSListen != "" {
		var l net.Listener
		if l, errHTTPS = listen("https", n.config().HTTPSListen, n.gates.clients); errHTTPS == nil {
			n.https = newHTTPSListener(l, n.config().Certificates)
		}
	}
	return errors.Join(errTraffic, errAdmin, errHTTPS)
}

// openStore makes the proxy, which opens the store, and plans the digest for the objects in it.
func (n *Node) openStore() (err error) {
	if n.proxy, err = proxy.New(n.proxyConfig()); err != nil {
		return fmt.Errorf("--store: %s", strings.TrimPrefix(err.Error(), "store: "))
	}
	return nil
}

// openGossip opens the port for gossip. If it does not stay open, the log has nothing of it.
func (n *Node) openGossip(stays bool) (err error) {
	c := n.gossipConfig()
	if !stays {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if n.gossip, err = gossip.New(c); err == nil {
		n.gossips.Store(n.gossip)
	}
	if errors.Is(err, gossip.ErrStateFile) {
		return fmt.Errorf("--store: %w", err)
	}
	return inUse("--gossip", n.config().Gossip, err)
}

// proxyConfig connects the proxy with the rest of the peer. The objects that it lists enter the
// digest, including those that it finds in its store.
func (n *Node) proxyConfig() proxy.Config {
	c := proxy.Config{
		Settings: n.settings(n.config()),
		Config: engine.Config{
			Name: n.config().Name, Cluster: n.invalidator, Others: n.livePeers,
			Advertise: n.holdings.Retain,
			Withdraw:  func(identity string) { n.holdings.Release(identity) },
			Tuning:    tuning(n.config()), Now: n.o.Now, Logger: n.log,
		},
		Store: diskstore.Options{
			Dir: n.config().Store, MaxBytes: n.config().StoreSize, MemoryBytes: n.config().MemorySize,
			Memory: n.budget.Open("objects", n.budget.Total()/8, 0), LabelMemory: n.budget.Open("tags", 0, 0),
			Beat:   n.watchdog.Watch("store-writer"),
			Logger: n.log, FS: n.o.FS,
		},
		Locator: n.siblings, Health: &n.health,
		ClientTLS: n.config().HTTPSListen != "",
		Purge:     n.purgeFor, MaxIdle: n.shares.Idle,
		Late:    n.lateness.Now,
		Own:     n.own,
		Admit:   n.roster.admit,
		Tracing: &n.tracing,
	}
	c.Observe = func(e proxy.Event) {
		n.durations.Observe(e)
		n.past.Observe(e)
		if access := n.access.Load(); access != nil {
			access.Observe(e)
		}
	}
	c.Dial = guarded(n.dial(), n.proxyAccess)
	if n.o.Network == nil {
		c.Addresses = http1.Lookup
	}
	dial := guarded(n.dialSibling(), n.siblingAccess)
	var peers transport = http1.ToSiblings(dial)
	if n.config().PeerTLS != nil {
		peers = peertls.NewTransport(n.config().PeerTLS, dial)
	}
	n.peers = loggingTransport{peers, n.gone, n.log}
	c.SiblingTransport = n.peers
	n.coalescer = sibling.NewCoalescer(peering.CoalescerConfig{
		Name: n.config().Name, Others: n.livePeers, Key: n.coalescingKey, HTTP: n.peers, Admit: c.Admit,
	}, &n.health)
	c.Coalescer = n.coalescer
	return c
}

// dial returns the function that makes connections for HTTP.
func (n *Node) dial() dialFunc {
	dial := (&net.Dialer{Timeout: max(10*time.Second, n.config().ConnectTimeout), KeepAlive: 30 * time.Second}).DialContext
	if n.o.Network != nil {
		dial = func(ctx context.Context, _, addr string) (net.Conn, error) { return n.o.Network.Dial(ctx, addr) }
	}
	return dial
}

// dialSibling returns the function that makes connections to siblings. They come from the address that siblings know
// this peer by, which may be another than the machine's first one: others would be refused there.
func (n *Node) dialSibling() dialFunc {
	usual := n.dial()
	if n.o.Network != nil {
		return usual
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(n.service())
		own, err := netip.ParseAddr(host)
		to, toErr := netip.ParseAddrPort(addr)
		if err != nil || toErr != nil || own.IsUnspecified() || own.Unmap().Is4() != to.Addr().Unmap().Is4() {
			return usual(ctx, network, addr)
		}
		from := &net.TCPAddr{IP: own.Unmap().AsSlice(), Zone: own.Zone()}
		c, err := (&net.Dialer{LocalAddr: from, Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, addr)
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EINVAL) { // it is another machine's, which translates addresses
			return usual(ctx, network, addr)
		}
		return c, err
	}
}

func (n *Node) gossipConfig() gossip.Config {
	share := n.shares.Gossip
	var stateFile string    // its directory may be missing if the store can't be opened
	var heldSince time.Time // when an earlier process last stored an object: this peer was up until then at least
	if n.proxy != nil {
		stateFile, heldSince = n.config().Digests, n.proxy.Store().Newest()
	}
	return gossip.Config{
		Name: n.config().Name, Cluster: n.config().Cluster, Bind: n.config().Gossip, Advertise: n.config().Advertise, Join: n.config().Join,
		Secret: n.config().Secret, Service: n.service(), Holdings: n.holdings, StateFile: stateFile, Logger: n.log,
		Advanced: gossip.Advanced{
			Settings: n.settings(n.config()).Sums(), AcceptSecrets: n.config().AcceptSecrets, Zone: n.config().Zone, Light: n.config().KeepDigests == "none", Publish: exchange.Publishing{Interval: n.config().Publish}, HeldSince: heldSince,
			Limits: gossip.Limits{Members: max(0, n.config().MaxMembers-1), Conns: share.Conns, ConnsPerHost: share.PerHost,
				DigestMemory: n.budget.Open("digests", n.budget.Total()/5, 0),
				StreamMemory: n.budget.Open("gossip", max(n.budget.Total()/64, leastForGossip), 0)},
			Network: n.o.Network,
			Hooks: gossip.Hooks{PeerDown: func(m gossip.Member) {
				if n.proxy != nil {
					n.proxy.SiblingGone(m.Name)
				}
			}},
		},
	}
}

// livePeers returns the peers to which requests can be sent.
func (n *Node) livePeers() (list []sibling.Peer) {
	for _, m := range n.gossip.Members() {
		if m.Alive && m.Service != "" {
			list = append(list, sibling.Peer{Name: m.Name, Addr: m.Service})
		}
	}
	return list
}

// gone reports whether a peer was a member and is none any more.
func (n *Node) gone(name string) bool {
	return slices.ContainsFunc(n.gossip.Members(), func(m gossip.Member) bool { return m.Name == name && !m.Alive })
}

// coalescingKey returns the key under which peers coalesce their fetches of an object.
func (n *Node) coalescingKey(identity string) uint64 {
	return uint64(digest.KeyOfString(n.holdings.Keys().Filter().Geometry().Seed, identity))
}

// service returns the address to which other peers send requests.
func (n *Node) service() string {
	if n.traffic == nil {
		return ""
	}
	addr := n.traffic.Addr().String()
	if n.config().Advertise == "" {
		return addr
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	host, _ := n.config().Advertised()
	return net.JoinHostPort(host, port)
}
