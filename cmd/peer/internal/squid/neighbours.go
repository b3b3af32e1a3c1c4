package squid

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Config configures [New]. Only Logger must be set.
type Config struct {
	// Dial connects to them; nil = net.Dialer.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger *slog.Logger

	// A digest is fetched again when it expires, but at least MinInterval and at most MaxInterval
	// after the last fetch; 0 = 10 s and 1 h.
	MinInterval, MaxInterval time.Duration
}

// prefix begins the names of Squids. No member of a cluster can have such a name.
const prefix = "squid@"

// Neighbours are the Squids that a peer exchanges digests with. They are safe for concurrent use.
type Neighbours struct {
	cfg  Config
	all  atomic.Pointer[[]*neighbour]
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	idle *http1.Transport
}

// New returns Neighbours without any Squid.
func New(c Config) *Neighbours {
	c.MinInterval = cmp.Or(c.MinInterval, 10*time.Second)
	c.MaxInterval = max(cmp.Or(c.MaxInterval, time.Hour), c.MinInterval)
	ctx, stop := context.WithCancel(context.Background())
	n := &Neighbours{cfg: c, ctx: ctx, stop: stop, idle: http1.ToSiblings(c.Dial)}
	n.idle.HeaderTimeout = headerTime
	n.all.Store(new([]*neighbour))
	return n
}

// Use makes the Squids at these addresses, host:port of their http_port, each once, the neighbours. Their digests are
// fetched until they are no neighbours any more, or Close is called; what is known of those that stay is kept. Only one
// goroutine may call Use or Close.
func (n *Neighbours) Use(addrs []string) {
	var next []*neighbour
	former := *n.all.Load()
	for _, addr := range addrs {
		if i := slices.IndexFunc(former, func(one *neighbour) bool { return one.addr == addr }); i >= 0 {
			next = append(next, former[i])
			continue
		}
		ctx, stop := context.WithCancel(n.ctx)
		one := &neighbour{cfg: &n.cfg, addr: addr, peer: prefix + addr, transport: n.idle, stop: stop}
		one.known.Store(new(digestState))
		next = append(next, one)
		n.wg.Go(func() { one.run(ctx) })
	}
	n.all.Store(&next)
	for _, one := range former {
		if !slices.Contains(next, one) {
			one.stop()
		}
	}
}

// Close stops the fetches.
func (n *Neighbours) Close() {
	n.stop()
	n.wg.Wait()
	n.idle.CloseIdleConnections()
}

// CandidatesFor appends the Squids whose digests match a lookup to dst.
func (n *Neighbours) CandidatesFor(dst []sibling.Candidate, q *sibling.LookupRequest) []sibling.Candidate {
	all := *n.all.Load()
	if len(all) == 0 { // most clusters have no Squids, and keys cost time
		return dst
	}
	keys, ok := keysFor(q)
	if !ok {
		return dst
	}
	now := time.Now()
	for _, one := range all {
		if c, ok := one.candidate(&keys, q.Header, now); ok {
			dst = append(dst, c)
		}
	}
	return dst
}

// Status describes each Squid, in the order of the configuration. With a lookup, it also says whether their digests
// match that.
func (n *Neighbours) Status(q *sibling.LookupRequest) (list []Status) {
	now := time.Now()
	var keys keys
	asked := false
	if q != nil {
		keys, asked = keysFor(q)
	}
	for _, one := range *n.all.Load() {
		s := one.status(now)
		s.Says = asked && one.known.Load().matches(&keys)
		list = append(list, s)
	}
	return list
}

// Status is the state of one Squid.
type Status struct {
	Name  string    // different from any peer's
	Addr  string    // host:port
	Alive bool      // it has sent a digest
	Since time.Time // when Alive last changed

	Current           bool // the digest has not expired
	Keys              int  // estimated number of objects in its digest
	FalsePositiveRate float64
	Age               time.Duration // since the digest was last confirmed
	MemoryBytes       int

	Says bool // the digest matches the lookup, whether or not that would be sent to the Squid
}
