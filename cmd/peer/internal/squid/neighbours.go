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

// Config says which Squids to know. The zero value of every field but Addrs is
// usable.
type Config struct {
	Addrs []string // host:port of their http_port, each once
	// Dial connects to them; nil = net.Dialer.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger *slog.Logger // nil = discard

	// A digest is fetched again when it expires, but not sooner than MinInterval
	// and not later than MaxInterval after it was fetched; 0 = 10 s and 1 h.
	MinInterval, MaxInterval time.Duration
}

const (
	minInterval = 10 * time.Second
	maxInterval = time.Hour
)

// prefix makes names of Squids, which no member of a cluster can have.
const prefix = "squid@"

// Neighbours are the Squids beside a peer. They are safe for concurrent use.
type Neighbours struct {
	all  []*neighbour
	stop context.CancelFunc
	wg   sync.WaitGroup
	idle *http.Transport
}

// New begins to fetch digests, until Close.
func New(c Config) *Neighbours {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MinInterval <= 0 {
		c.MinInterval = minInterval
	}
	c.MaxInterval = max(cmp.Or(c.MaxInterval, maxInterval), c.MinInterval)
	ctx, stop := context.WithCancel(context.Background())
	n := &Neighbours{stop: stop, idle: sibling.NewHTTPTransport(c.Dial)}
	n.idle.ResponseHeaderTimeout = headerTime
	for _, addr := range c.Addrs {
		one := &neighbour{cfg: &c, addr: addr, peer: prefix + addr, transport: n.idle}
		n.all = append(n.all, one)
		n.wg.Go(func() { one.run(ctx) })
	}
	return n
}

// Close ends what is under way.
func (n *Neighbours) Close() {
	n.stop()
	n.wg.Wait()
	n.idle.CloseIdleConnections()
}

// CandidatesFor appends the Squids whose digests match a question.
func (n *Neighbours) CandidatesFor(dst []sibling.Candidate, q *sibling.LookupRequest) []sibling.Candidate {
	if len(n.all) == 0 {
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

// Says reports, for each Squid in the order of the configuration, whether its
// digest matches a question, be it asked now or not.
func (n *Neighbours) Says(q *sibling.LookupRequest) []bool {
	says := make([]bool, len(n.all))
	keys, ok := keysFor(q)
	for i, one := range n.all {
		at := one.known.Load()
		says[i] = ok && at != nil && at.matches(&keys)
	}
	return says
}

// Status is what is known of one Squid.
type Status struct {
	Name  string    // unlike any peer's
	Addr  string    // host:port
	Alive bool      // a digest could be had
	Since time.Time // when that last changed

	Current           bool // the digest has not expired
	Keys              int  // objects in its digest, as far as can be told
	FalsePositiveRate float64
	Age               time.Duration // since the digest was last confirmed
	MemoryBytes       int
}
