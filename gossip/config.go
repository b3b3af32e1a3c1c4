package gossip

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/insider"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
	"github.com/summarycache/summarycache/gossip/limitlog"
)

// Config describes a [Node]. Only Name is required.
type Config struct {
	// Name of this peer, unique in the cluster: 1 to 63 letters, digits and
	// "._-:".
	Name string

	// Bind is the host:port to listen on, both UDP and TCP. Empty means
	// ":7946"; port 0 picks a free one.
	Bind string

	// Advertise is the address at which others reach this peer: an IP or a name that
	// resolves to an IP, with a :port if another one than that of Bind leads here. Empty means the address of Bind or,
	// if that is unspecified, the likeliest of this machine.
	Advertise string

	// Join lists peers to join through; one that is up suffices. An entry is
	//
	//   - an ip:port,
	//   - a name:port, which means all addresses of the name, or
	//   - srv:name, which means all addresses and ports of the name's SRV records.
	//
	// Names are looked up every minute, and whenever an entry leads to no other peer. The node
	// tries the addresses that are not members. So peers that start together behind one name
	// find each other, and so do the parts of a cluster that was split.
	Join []string

	// Cluster is the name of the cluster, the same at all of its peers: up to 63 letters, digits and "._-:". Peers of
	// clusters with other names, and of those without one, are refused, whatever their addresses and secrets: so an
	// address that moves from one cluster to another does not make them one. Empty means a cluster without a name, as
	// of programs that know none.
	Cluster string

	// Secret is shared by all peers: at least 16 bytes, preferably 32 random ones. Empty means that
	// anybody who reaches the port can take part.
	Secret []byte

	// Service is the host:port where this peer answers its siblings, at most 63 bytes. Without a host, as
	// in ":8080", or with an unspecified one, as a listener on all addresses has, it is that port at the
	// address of [Node.Addr]. Empty means that this peer does not answer siblings, and is never a candidate.
	Service string

	// Objects is the approximate number of objects that this peer will hold, at most 2^30, and no more than
	// Limits.DigestBytes have room for. New then
	// creates empty [Holdings], which [Node.Holdings] returns. Their filter, by
	// [digest.PlanSet], has a false-positive rate of one in a thousand, and grows if there are more
	// objects. Its first epoch is the Unix time in seconds. Zero means that New creates none.
	Objects int
	// Profile says what the identities of objects are; the zero value is [digest.Opaque]. Digests of any
	// other profile are refused. Given Holdings have their own.
	Profile digest.Profile

	// Holdings, instead of Objects, are the contents that this peer publishes, if their filter is of
	// the program's own design or already has contents. If Holdings is nil and Objects is zero, this
	// peer only listens.
	Holdings *Holdings

	// StateFile is loaded by New, and saved every five minutes and when the node ends. It has the
	// replicas, so that a restarted peer fetches only changes, and this peer's digest. If Holdings
	// get their contents again before New, in a filter of the same geometry, and no other node
	// publishes them, the others fetch only changes as well. The file's directory must exist. Empty
	// means that nothing is saved.
	StateFile string

	// Logger gets the log records, as many as package limitlog lets through; nil means slog.Default().
	Logger *slog.Logger

	Advanced

	seed   uint64        // of digests; set by withDefaults
	rejoin time.Duration // between attempts to reach seeds and dead peers again; zero means 12 s
	detect detection
	ring   *secrets.Ring // of Secret and AcceptSecrets
	later  []byte        // ends the metadata, as fields of later programs do; only tests set it
}

// Advanced has the settings that few programs need.
type Advanced struct {
	// AcceptSecrets are up to three further secrets that other peers may use: the cluster's next
	// ones, or its former ones. See [Node.SetSecrets].
	AcceptSecrets [][]byte

	// HeldSince is when this peer, in a former life, last had contact with the others, if it still
	// holds its contents of that time. It gets the invalidations since then. If no member remembers
	// all of these, it gets one of everything. The zero Time means that it begins without contents.
	HeldSince time.Time

	// Zone names where this peer runs, such as a data centre: 1 to 14 letters, digits and "._-:". A peer
	// asks siblings of its own zone first, see package sibling. Empty means that it asks by round trips alone.
	Zone string
	// Light says that this peer keeps no digests of others: [Node.Candidates] finds nothing, and package sibling asks a peer
	// that keeps them (PROTOCOL.md, section 16), so that others should do so.
	Light bool
	// Settings are sums of what should be alike at all members that have it, by name: such as, for each host that a
	// cache serves, a hash of where it comes from and of the rules for it. Of these the lower two bytes travel, of up
	// to 16 names. Where a member has another sum under a name that this peer has too, the log says so. nil means that
	// nothing is compared.
	Settings map[string]uint64
	// Publish determines when changes become a new version.
	Publish exchange.Publishing

	// Limits on resources.
	Limits Limits

	// Network opens the sockets; nil means the system's.
	Network Network

	// Hooks are called for events.
	Hooks Hooks
}

// detection tunes memberlist. A silent peer is declared dead
// after about probe × (1 + suspicion × max(1, log10 of the number of peers)).
type detection struct {
	probe     time.Duration // between probes of random peers, and for an answer through others; zero means 1 s
	timeout   time.Duration // of a direct answer; zero means half of probe, at most 500 ms
	suspicion int           // probe intervals in which a suspected peer can refute; zero means 4
}

// Limits bound the resources of a node. Zero values are sensible.
type Limits struct {
	DigestBytes  int // longest body fetched or served, the same at all peers; zero means 64 MiB, for 47 million objects
	Conns        int // incoming connections; zero means 4096
	ConnsPerHost int // of them from one address; zero means 512
	Members      int // other peers, including those that died within a minute; zero means 16,383, the most there can be

	// DigestMemory grants the memory of the others' digests: replicas, the index over them, and answers
	// that are being received. A digest for which there is none is not fetched, and its peer is no
	// candidate or remains at its last version. StreamMemory grants that of incoming connections. nil means
	// that only the limits above hold.
	DigestMemory, StreamMemory Memory
}

// Hooks are called one at a time, in order, from one goroutine of the node. Events wait while a
// hook runs; beyond 1,024 they are dropped. Any hook may be nil.
type Hooks struct {
	PeerUp   func(Member)
	PeerDown func(Member)
	Event    func(exchange.Event) // a digest was applied, a divergence found, …
}

const (
	defaultBind    = ":7946"
	leastDigest    = 1 << 10               // bytes: smaller ones are of no use
	maxMembers     = exchange.MaxHeads - 1 // a vector has this peer as well
	defaultProbe   = time.Second
	maxTimeout     = 500 * time.Millisecond
	defaultSuspect = 4
	defaultRejoin  = 12 * time.Second
)

// withDefaults returns c with its defaults, or all mistakes in it.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("gossip: "+format, args...)) }

	if !exchange.ValidName(c.Name) {
		bad("name %q: want 1 to %d letters, digits and \"._-:\"", c.Name, exchange.MaxName)
	}
	if c.Bind == "" {
		c.Bind = defaultBind
	}
	if err := insider.CheckHostPort(c.Bind); err != nil {
		bad("bind %q: %w", c.Bind, err)
	}
	for _, entry := range c.Join {
		if err := insider.CheckJoin(entry); err != nil {
			bad("join %q: %w", entry, err)
		}
	}
	if c.Cluster != "" && !exchange.ValidName(c.Cluster) {
		bad("cluster %q: want up to %d letters, digits and \"._-:\"", c.Cluster, exchange.MaxName)
	}
	ring, err := secrets.New(c.Cluster, c.Secret, c.AcceptSecrets)
	if err != nil {
		bad("%w", err)
	}
	c.ring = ring
	if len(c.Service) > exchange.MaxService {
		bad("service %q: longer than %d bytes", c.Service, exchange.MaxService)
	} else if c.Service != "" {
		if err := insider.CheckReachable(c.Service); err != nil {
			bad("service %q: %w", c.Service, err)
		}
	}
	if c.Zone != "" && !exchange.ValidZone(c.Zone) {
		bad("zone %q: want 1 to %d letters, digits and \"._-:\"", c.Zone, exchange.MaxZone)
	}
	if l := c.Limits; min(l.DigestBytes, l.Conns, l.ConnsPerHost, l.Members) < 0 {
		bad("limits %+v: want none below 0", l)
	} else if l.Members > maxMembers {
		bad("limits: %d members, want %d at most", l.Members, maxMembers)
	} else if l.DigestBytes > 0 && l.DigestBytes < leastDigest {
		bad("limits: DigestBytes is %d: want at least %d bytes, of which some hundred objects take as many",
			l.DigestBytes, leastDigest)
	}
	if min(c.Publish.MinInterval, c.Publish.Interval) < 0 {
		bad("publish %+v: want no interval below 0", c.Publish)
	}
	c.fill()
	if err := c.hold(); err != nil {
		bad("%w", err)
	}
	return c, errors.Join(errs...)
}

// At this rate of false positives, objectsMax objects need the widest filter that the digest format
// has.
const (
	objectsMax     = 1 << 30
	falsePositives = 0.001
)

// hold takes the digest seed from Holdings, or derives it from Secret and creates Holdings for
// Objects.
func (c *Config) hold() error {
	switch {
	case c.Objects < 0 || c.Objects > objectsMax:
		return fmt.Errorf("%d objects: want 0 to %d", c.Objects, objectsMax)
	case c.Holdings != nil && c.Objects != 0:
		return errors.New("objects and holdings: want one of them")
	case c.Holdings != nil && c.Holdings.set == nil:
		return errors.New("holdings without a filter")
	case c.Holdings != nil:
		g := c.Holdings.set.Geometry()
		c.seed, c.Profile = g.Seed, g.Profile
		return c.acceptable()
	}
	c.seed = digest.SeedFrom(c.Secret)
	if c.Objects == 0 {
		return nil
	}
	var err error
	if c.Holdings, err = PlanHoldings(uint64(c.Objects), falsePositives, c.Profile, c.Secret); err != nil {
		return err
	}
	return c.acceptable()
}

// acceptable returns an error if peers with the limits of this one would refuse the digest of as many objects as are
// planned.
func (c *Config) acceptable() error {
	g, planned := c.Holdings.set.Geometry(), c.Holdings.set.Inside().Planned()
	bits := float64(g.Bits)
	ones := -bits * math.Expm1(-float64(planned)*float64(g.Hashes)/bits)
	if err := c.digestLimits().Accept(g, uint64(ones)); err != nil {
		return fmt.Errorf("%d objects: peers with the same limits refuse their digest: want fewer, or greater "+
			"Limits.DigestBytes at every peer: %w", planned, err)
	}
	return nil
}

// digestLimits are those of the digests of others. A digest of the usual rate takes less than four times its length to
// decode.
func (c *Config) digestLimits() digest.Limits {
	l := c.Limits.DigestBytes
	return digest.Limits{Bytes: l, Memory: max(digestMemory, 4*min(l, math.MaxInt/4)), Profile: c.Profile}
}

func (c *Config) fill() {
	d, l := &c.detect, &c.Limits
	d.probe = cmp.Or(d.probe, defaultProbe)
	d.timeout = cmp.Or(d.timeout, min(d.probe/2, maxTimeout))
	d.suspicion = cmp.Or(d.suspicion, defaultSuspect)
	c.rejoin = cmp.Or(c.rejoin, defaultRejoin)
	l.DigestBytes = cmp.Or(l.DigestBytes, 64<<20)
	l.Conns = cmp.Or(l.Conns, 4096)
	l.ConnsPerHost = cmp.Or(l.ConnsPerHost, 512)
	l.Members = cmp.Or(l.Members, maxMembers)
	if l.DigestMemory == nil {
		l.DigestMemory = unbounded{}
	}
	if l.StreamMemory == nil {
		l.StreamMemory = unbounded{}
	}
	if c.Network == nil {
		c.Network = new(systemNetwork)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = slog.New(limitlog.New(c.Logger.Handler())).With("peer", c.Name)
}

// serviceAt returns the address of a service as others reach it, for a peer that they reach at own.
func serviceAt(service string, own netip.Addr) (string, error) {
	host, port, err := net.SplitHostPort(service)
	if err != nil { // there is none
		return "", nil
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.IsUnspecified():
		return net.JoinHostPort(own.String(), port), nil
	case (host == "localhost" || err == nil && ip.IsLoopback()) && !own.IsLoopback():
		return "", fmt.Errorf("service %q: others reach this peer at %s, and would ask themselves: want an address "+
			"that they reach, or %q", service, own, ":"+port)
	}
	return service, nil
}

// LogValue shows the configuration without the secret.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", c.Name),
		slog.String("cluster", c.Cluster),
		slog.String("bind", c.Bind),
		slog.String("advertise", c.Advertise),
		slog.Any("join", c.Join),
		slog.Bool("secret", len(c.Secret) > 0),
		slog.String("service", c.Service),
		slog.String("zone", c.Zone),
	)
}
