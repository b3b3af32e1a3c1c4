package squid

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// Config configures [New]. Only Addrs and Logger must be set.
type Config struct {
	Addrs []string // host:port of their http_port, each once
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
	all  []*neighbour
	stop context.CancelFunc
	wg   sync.WaitGroup
	idle *http.Transport
}

// New begins to fetch digests, which goes on until Close.
func New(c Config) *Neighbours {
	c.MinInterval = cmp.Or(c.MinInterval, 10*time.Second)
	c.MaxInterval = max(cmp.Or(c.MaxInterval, time.Hour), c.MinInterval)
	ctx, stop := context.WithCancel(context.Background())
	n := &Neighbours{stop: stop, idle: sibling.NewHTTPTransport(c.Dial)}
	n.idle.ResponseHeaderTimeout = headerTime
	for _, addr := range c.Addrs {
		one := &neighbour{cfg: &c, addr: addr, peer: prefix + addr, transport: n.idle}
		one.known.Store(new(known))
		n.all = append(n.all, one)
		n.wg.Go(func() { one.run(ctx) })
	}
	return n
}

// Close stops the fetches.
func (n *Neighbours) Close() {
	n.stop()
	n.wg.Wait()
	n.idle.CloseIdleConnections()
}

// CandidatesFor appends the Squids whose digests match a lookup to dst.
func (n *Neighbours) CandidatesFor(dst []sibling.Candidate, q *sibling.LookupRequest) []sibling.Candidate {
	if len(n.all) == 0 { // most clusters have no Squids, and keys cost time
		return dst
	}
	keys, ok := keysFor(q)
	if !ok {
		return dst
	}
	now := time.Now()
	for _, one := range n.all {
		if c, ok := one.candidate(&keys, q.Header, now); ok {
			dst = append(dst, c)
		}
	}
	return dst
}

// Status describes each Squid, in the order of the configuration.
func (n *Neighbours) Status() []Status {
	now := time.Now()
	list := make([]Status, 0, len(n.all))
	for _, one := range n.all {
		list = append(list, one.status(now))
	}
	return list
}

// Says reports, for each Squid in the order of the configuration, whether its digest matches a
// lookup, whether or not the lookup would be sent to it.
func (n *Neighbours) Says(q *sibling.LookupRequest) []bool {
	says := make([]bool, len(n.all))
	keys, ok := keysFor(q)
	for i, one := range n.all {
		says[i] = ok && one.known.Load().matches(&keys)
	}
	return says
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
}
