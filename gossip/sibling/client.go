package sibling

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
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
	cfg    Config
	stats  counters
	recent recent
	budget budget

	underway underway
	origins  Health // by host
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
func (c *Client) CloseIdleConnections() {
	if t, ok := c.cfg.HTTP.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Accuse says that a sibling gave what it should not have. If that is proven, the sibling
// is quarantined for a minute, and for twice as long each further time, up to 30 minutes.
// Otherwise it is suspended like one that failed.
func (c *Client) Accuse(peer string, proven bool) {
	r := c.cfg.Health.of(peer)
	if proven {
		r.quarantine(time.Now())
	} else {
		r.failed(time.Now())
	}
}

// Stats count what became of questions. All start at 0 and only grow.
type Stats struct {
	Asked     uint64 // questions sent, but for those by [Inquiry.Only] that found nothing
	Hits      uint64 // of those, answered with an object that was of use
	FalseHits uint64 // of those, answered that there is no fresh copy, or with what was of no use
	Errors    uint64 // of those, failed, too slow, or broken off within the body
	Outrun    uint64 // of those, overtaken by another that was asked later
	Hedges    uint64 // questions, to the origin included, asked while another was unanswered
	HedgesWon uint64 // of those, answered first
	Origins   uint64 // hedges to the origin that a sibling overtook after all
	Unhedged  uint64 // hedges that there was no budget for
	Waits     uint64 // further questions, to siblings that were fetching the object
	WaitsWon  uint64 // of those, answered with it
	Excused   uint64 // of Errors, those not held against the sibling, since this process itself was late, or most siblings were
	Spared    uint64 // questions not asked, since too many were lost
	Bytes     uint64 // of bodies received
}

type counters struct {
	asked, hits, falseHits, errors, outrun, hedges, hedgesWon, origins, unhedged, waits, waitsWon, excused, spared, bytes atomic.Uint64
}

// Stats returns the counts as they are.
func (c *Client) Stats() Stats {
	s := &c.stats
	return Stats{
		Asked: s.asked.Load(), Hits: s.hits.Load(), FalseHits: s.falseHits.Load(), Errors: s.errors.Load(), Outrun: s.outrun.Load(),
		Hedges: s.hedges.Load(), HedgesWon: s.hedgesWon.Load(), Origins: s.origins.Load(), Unhedged: s.unhedged.Load(),
		Waits: s.waits.Load(), WaitsWon: s.waitsWon.Load(), Excused: s.excused.Load(), Spared: s.spared.Load(), Bytes: s.bytes.Load(),
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
