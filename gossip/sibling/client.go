package sibling

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	defaultTimeout = 500 * time.Millisecond
	defaultMax     = 2
)

// Config says how siblings are asked. The zero value of every field but Name and
// Locator is usable.
type Config struct {
	// Name is this cache's in Via: a token (RFC 9110 section 5.6.2), and its name
	// in the cluster, since siblings may look for it among the members.
	Name    string
	Locator Locator           // knows which siblings may hold an object
	Health  *Health           // of the siblings, shared with what else talks to them; nil = one of its own
	HTTP    http.RoundTripper // of the questions; nil = NewHTTPTransport(nil)
	// Timeout is from asking a sibling to its response's header; 0 = 500 ms. While
	// siblings take long, or this process is late, it is up to three times that.
	Timeout time.Duration
	// Late says by how much this process runs late, for want of a processor; nil = it
	// does not. It is called for each question and must not block.
	Late func() time.Duration
	Max  int // siblings asked for one object, at most; 0 = 2
	// Hedges is how many more questions may be asked because an answer takes long,
	// to the origin included, as a share of all; 0 = 0.05, negative = none.
	Hedges float64
}

// A Client asks siblings. It is safe for concurrent use.
type Client struct {
	cfg     Config
	stats   tally[Stats]
	recent  recent
	budget  budget
	origins Health // by host

	mu       sync.Mutex
	underway map[*exchange]struct{} // questions, and bodies that are being received
}

// New returns a Client, or every mistake in c at once.
func New(c Config) (*Client, error) {
	var errs []error
	if err := CheckName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("sibling: %w", err))
	}
	if c.Locator == nil {
		errs = append(errs, errors.New("sibling: no Locator"))
	}
	if c.Timeout < 0 || c.Max < 0 || c.Hedges > 1 {
		errs = append(errs, errors.New("sibling: a setting out of range"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.HTTP == nil {
		c.HTTP = NewHTTPTransport(nil)
	}
	c.Health = cmp.Or(c.Health, &Health{})
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Max = cmp.Or(c.Max, defaultMax)
	c.Hedges = cmp.Or(c.Hedges, defaultBudget)
	client := &Client{cfg: c}
	if c.Hedges > 0 {
		client.budget = budget{share: c.Hedges, saved: 1}
	}
	return client, nil
}

// CloseIdleConnections closes those of Config.HTTP that no question uses.
func (c *Client) CloseIdleConnections() { closeIdle(c.cfg.HTTP) }

func closeIdle(t http.RoundTripper) {
	if t, ok := t.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Accuse says that a sibling gave what it should not have. If that is proven, the sibling
// is quarantined for a minute, and for twice as long each further time, up to 30 minutes.
// Otherwise it is suspended like one that failed.
func (c *Client) Accuse(peer string, proven bool) { c.cfg.Health.accuse(peer, proven) }

// Gone tells that a sibling is no longer a member of the cluster. What it was asked
// is canceled at once, bodies that it is sending included, so that another is asked.
func (c *Client) Gone(peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := range c.underway {
		if e.from.Peer == peer {
			e.cancel(errGone)
		}
	}
}

// CheckName says what keeps name from being a cache's in Via and Cache-Status: it
// must be a token (RFC 9110 section 5.6.2).
func CheckName(name string) error {
	bad := func(c rune) bool {
		return (c|0x20 < 'a' || c|0x20 > 'z') && !strings.ContainsRune("0123456789!#$%&'*+-.^_`|~", c)
	}
	if name == "" || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%q cannot name a cache: use letters, digits and any of !#$%%&'*+-.^_`|~", name)
	}
	return nil
}
