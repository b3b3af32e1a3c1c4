package gossip

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Config describes a [Node]. Only Name is required.
type Config struct {
	// Name of this peer, unique in the cluster: 1 to 63 letters, digits and
	// "._-:".
	Name string

	// Bind is the host:port to listen on, both UDP and TCP. Empty means
	// ":7946"; port 0 picks a free one.
	Bind string

	// Advertise is the address at which others reach this peer: an IP, IP:port
	// or a name that resolves to an IP. Empty means that of Bind, or
	// one of this machine's if that is unspecified.
	Advertise string

	// Join lists peers to join through; one that is up suffices. An entry is
	//
	//   - an ip:port,
	//   - a name:port, which means all addresses of the name, or
	//   - srv:name, which means all addresses and ports of the name's SRV records.
	//
	// Names are looked up every minute, and whenever an entry leads to no other peer. The node
	// tries the addresses that are not members. So peers that start together behind one name
	// find each other, and so do the parts of a cluster that was split. See [Node.Alone].
	Join []string

	// Secret shared by all peers, at least 16 bytes, better 32 random ones.
	// Empty means that anybody who reaches the port can take part.
	Secret []byte

	// Service is the host:port where this peer answers its siblings, announced to
	// them unchanged; at most 63 bytes. Empty means that it does not answer any.
	Service string

	// Objects is about how many objects this peer will hold, at most 2^30. New then makes
	// empty [Holdings], which [Node.Holdings] returns. Their filter, by [digest.GeometryFor],
	// has a false-positive rate of one in a thousand; twice as many objects double it.
	// Its epoch is the Unix time in seconds. Zero means that New makes none.
	Objects int

	// Holdings, instead of Objects, is what this peer publishes: with a filter
	// of the program's own design, or with contents already. If it is nil and Objects zero,
	// this peer only listens.
	Holdings *Holdings

	// StateFile is loaded by New. It is saved when the node ends, and every five
	// minutes. It has the replicas, so that a restarted peer fetches
	// only what changed, and what this peer published. If Holdings, with a filter of
	// the same geometry, have their contents again before New, and no other node publishes
	// them, the others fetch only what changed as well. The file's directory
	// must exist. Empty means that nothing is saved.
	StateFile string

	// Logger for everything; nil means slog.Default().
	Logger *slog.Logger

	Advanced

	seed   uint64        // of digests, once it is complete
	rejoin time.Duration // between attempts to reach seeds and dead peers again; zero means 12 s
	detect detection
	ring   *ring // of Secret and AcceptSecrets
}

// Advanced are the settings that few programs need.
type Advanced struct {
	// AcceptSecrets are at most three further secrets that others may use: those that
	// the cluster is about to use, or has used until now. See [Node.SetSecrets].
	AcceptSecrets [][]byte

	// HeldSince is when this peer, in a former life, was last in touch with the others, if it
	// still holds what it held then. It will hear what was invalidated since; if
	// nobody knows all of that any more, it will hear that everything was. The zero Time means that
	// it begins with nothing.
	HeldSince time.Time

	// Publish says when changes become a new version.
	Publish exchange.Publishing

	// Sign makes this peer sign what it publishes, by a key of this life that its
	// metadata announces: nobody can then pass on a forged digest of it.
	// It costs 64 bytes per body. Signatures of others are checked in any case.
	Sign bool

	// Limits on resources.
	Limits Limits

	// Network is where the sockets come from; nil means the system's.
	Network Network

	// Hooks are called for events.
	Hooks Hooks
}

// detection tunes memberlist. A silent peer is declared dead
// after about probe × (1 + suspicion × max(1, log10 of the number of peers)).
type detection struct {
	probe     time.Duration // between probes of random peers, and for an answer through others; zero means 1 s
	timeout   time.Duration // of a direct answer; zero means half of probe, at most 500 ms
	suspicion int           // probes that a suspect has to defend itself; zero means 4
}

// Limits bound the resources of a node. Zero values are sensible.
type Limits struct {
	DigestBytes  int // longest body fetched or served; zero means 64 MiB
	IndexBytes   int // memory of the index over them, bytes; a peer whose digest does not fit is no candidate; zero means unlimited
	Conns        int // incoming connections; zero means 4096
	ConnsPerHost int // of them from one address; zero means 512
	Members      int // other peers, those that died within a minute included; zero means 4096
}

// Hooks are called one at a time, in order, from one goroutine of the node.
// Events wait while a hook runs; beyond 1,024 they are dropped.
// Any may be nil.
type Hooks struct {
	PeerUp   func(Member)
	PeerDown func(Member)
	Event    func(exchange.Event) // a digest was applied, a divergence found, …
}

const (
	defaultBind    = ":7946"
	defaultProbe   = time.Second
	maxTimeout     = 500 * time.Millisecond
	defaultSuspect = 4
	defaultRejoin  = 12 * time.Second
)

// withDefaults returns c with its defaults, or everything that is wrong with it.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("gossip: "+format, args...)) }

	if !exchange.ValidName(c.Name) {
		bad("name %q: want 1 to %d letters, digits and \"._-:\"", c.Name, exchange.MaxName)
	}
	if c.Bind == "" {
		c.Bind = defaultBind
	}
	if err := checkHostPort(c.Bind); err != nil {
		bad("bind %q: %w", c.Bind, err)
	}
	for _, entry := range c.Join {
		if err := CheckJoin(entry); err != nil {
			bad("join %q: %w", entry, err)
		}
	}
	ring, err := newRing(c.Secret, c.AcceptSecrets)
	if err != nil {
		bad("%w", err)
	}
	c.ring = ring
	if len(c.Service) > exchange.MaxService {
		bad("service %q: longer than %d bytes", c.Service, exchange.MaxService)
	} else if c.Service != "" {
		if err := checkHostPort(c.Service); err != nil {
			bad("service %q: %w", c.Service, err)
		}
	}
	if err := c.hold(); err != nil {
		bad("%w", err)
	}
	if l := c.Limits; min(l.DigestBytes, l.IndexBytes, l.Conns, l.ConnsPerHost, l.Members) < 0 {
		bad("limits %+v: want none below 0", l)
	}
	if min(c.Publish.MinInterval, c.Publish.Interval) < 0 {
		bad("publish %+v: want no interval below 0", c.Publish)
	}
	c.fill()
	return c, errors.Join(errs...)
}

// objectsMax bounds Config.Objects: at the rate below they need the
// widest filter that there is.
const (
	objectsMax     = 1 << 30
	falsePositives = 0.001
)

// hold takes the seed from the Holdings, or makes both from Objects and Secret.
func (c *Config) hold() error {
	switch {
	case c.Objects < 0 || c.Objects > objectsMax:
		return fmt.Errorf("%d objects: want 0 to %d", c.Objects, objectsMax)
	case c.Holdings != nil && c.Objects != 0:
		return errors.New("objects and holdings: want one of them")
	case c.Holdings != nil && c.Holdings.filter == nil:
		return errors.New("holdings without a filter")
	case c.Holdings != nil:
		c.seed = c.Holdings.filter.Geometry().Seed
		return nil
	}
	c.seed = digest.SeedFrom(c.Secret)
	if c.Objects == 0 {
		return nil
	}
	var err error
	c.Holdings, err = PlanHoldings(uint64(c.Objects), falsePositives, c.Secret)
	return err
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
	l.Members = cmp.Or(l.Members, 4096)
	if c.Network == nil {
		c.Network = new(systemNetwork)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = c.Logger.With("peer", c.Name)
}

func checkHostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q: want 0 to 65535", port)
	}
	return nil
}

// LogValue shows the configuration without the secret.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", c.Name),
		slog.String("bind", c.Bind),
		slog.String("advertise", c.Advertise),
		slog.Any("join", c.Join),
		slog.Bool("secret", len(c.Secret) > 0),
		slog.String("service", c.Service),
	)
}
