package sibling

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

const (
	defaultTimeout = 500 * time.Millisecond
	leastTimeout   = time.Millisecond
	mostAsked      = 2 // siblings asked for one object
)

// Config configures a Client. The zero value of every field but Name and Locator is usable.
type Config struct {
	// Name is the name of this cache in Via: a token (RFC 9110 section 5.6.2). It must be its
	// name in the cluster, since siblings may look for it among the members.
	Name    string
	Locator Locator           // knows which siblings may hold an object
	Health  *Health           // of the siblings; may be shared with other users of the same peers; nil = a new one
	HTTP    http.RoundTripper // carries lookup requests; nil = a client of this module for HTTP/1.1
	// Timeout is how long a sibling may take to send its response's header, at least 1 ms; 0 = 500 ms. While
	// siblings are slow, or this process runs late, it is up to three times as long.
	Timeout time.Duration
	// ZoneCost is by how much a sibling of another zone counts as slower than it is, where it is compared with
	// the origin; 0 = it counts as it is. It matters to a peer with a zone only.
	ZoneCost time.Duration
	// Late returns by how much this process runs late because it gets too little CPU time; nil
	// = not at all. It is called for each lookup request and must not block.
	Late func() time.Duration
}

// A Client sends lookup requests to siblings. Make one with [New]. It is safe for concurrent use.
type Client struct {
	cfg  Config
	most int // siblings asked for one object

	zoneCost atomic.Int64 // see inside.SetZoneCost

	toOrigins *http1.Transport // of a [Transport] without one

	stats   tally
	origins Health // by host

	judging atomic.Bool // a keeper is asked about another

	mu       sync.Mutex
	underway map[*transfer]struct{}
	hedge    budget
}

// errZero is the error of a Client that is not usable.
var errZero = errors.New("sibling: a Client that was not made by New")

// New returns a Client, or an error that names every mistake in c.
func New(c Config) (*Client, error) {
	var errs []error
	if err := checkName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("sibling: %w", err))
	}
	if c.Locator == nil {
		errs = append(errs, errors.New("sibling: no Locator"))
	}
	if min(c.Timeout, c.ZoneCost) < 0 {
		errs = append(errs, errors.New("sibling: Timeout or ZoneCost is negative"))
	} else if c.Timeout > 0 && c.Timeout < leastTimeout {
		errs = append(errs, fmt.Errorf("sibling: in a Timeout of %v no sibling answers: want at least %v, such as "+
			"500 * time.Millisecond", c.Timeout, leastTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.HTTP == nil {
		c.HTTP = http1.ToSiblings(nil)
	}
	c.Health = cmp.Or(c.Health, &Health{})
	if l, ok := c.Locator.(doubter); ok {
		c.Health.mu.Lock()
		c.Health.doubt = l.Doubt
		c.Health.mu.Unlock()
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	client := &Client{cfg: c, most: mostAsked, hedge: budget{share: hedgeShare, saved: 1}, underway: make(map[*transfer]struct{}), toOrigins: http1.ToOrigins()}
	client.zoneCost.Store(int64(c.ZoneCost))
	return client, nil
}

// CloseIdleConnections closes the connections of Config.HTTP that are not in use.
func (c *Client) CloseIdleConnections() {
	(&http.Client{Transport: c.cfg.HTTP}).CloseIdleConnections()
}

// Accuse reports that a sibling has sent a wrong answer. If that is proven, the sibling is
// quarantined for a minute, and for twice as long each further time, up to 30 minutes.
// Otherwise it is suspended, as after a failure.
func (c *Client) Accuse(peer string, proven bool) {
	c.cfg.Health.record(outcome{peer: peer, kind: other, result: map[bool]result{true: accused, false: failed}[proven]})
}

// Gone reports that a sibling is no longer a member of the cluster. All requests to it are
// canceled at once, with the bodies that it is sending, so that another sibling is asked.
func (c *Client) Gone(peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t := range c.underway {
		if t.from.Peer == peer {
			t.cancel(errGone)
		}
	}
}

// checkName returns an error if name cannot be the name of a cache in Via and Cache-Status. It
// must be a token (RFC 9110 section 5.6.2).
func checkName(name string) error {
	if !rfc9111.IsToken(name) {
		return fmt.Errorf("%q cannot name a cache: use letters, digits and any of !#$%%&'*+-.^_`|~", name)
	}
	return nil
}
