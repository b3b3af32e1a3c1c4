package sibling

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// MaxAsked is how many siblings are asked for one object unless Config.Max says
// otherwise.
const MaxAsked = 2

const defaultTimeout = 500 * time.Millisecond

// Config says how siblings are asked. The zero value of every field but Name and
// Locator is usable.
type Config struct {
	// Name is this cache's in Via: a token (RFC 9110 section 5.6.2), and its name
	// in the cluster, since siblings may look for it among the members.
	Name    string
	Locator Locator           // who may hold an object
	Carrier http.RoundTripper // of the questions; nil = NewCarrier(nil)
	Timeout time.Duration     // from asking a sibling to its response's header; 0 = 500 ms
	Max     int               // siblings asked for one object; 0 = 2
}

// A Client asks siblings. It is safe for concurrent use.
type Client struct {
	cfg   Config
	stats counters
}

// New returns a Client, or every mistake in c at once.
func New(c Config) (*Client, error) {
	var errs []error
	if !isToken(c.Name) {
		errs = append(errs, fmt.Errorf("sibling: %q cannot name a cache: use letters, digits and any of !#$%%&'*+-.^_`|~", c.Name))
	}
	if c.Locator == nil {
		errs = append(errs, errors.New("sibling: no Locator"))
	}
	if c.Timeout < 0 || c.Max < 0 {
		errs = append(errs, errors.New("sibling: a negative setting"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if c.Carrier == nil {
		c.Carrier = NewCarrier(nil)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Max == 0 {
		c.Max = MaxAsked
	}
	return &Client{cfg: c}, nil
}

// CloseIdleConnections closes those of the Carrier that no question uses.
func (c *Client) CloseIdleConnections() {
	if t, ok := c.cfg.Carrier.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Stats count what became of questions. All start at 0 and only grow.
type Stats struct {
	Asked     uint64 // questions sent
	Hits      uint64 // of those, answered with an object that was of use
	FalseHits uint64 // of those, answered that there is no fresh copy, or with what was of no use
	Errors    uint64 // of those, failed, too slow, or broken off within the body
	Bytes     uint64 // of bodies received
}

type counters struct{ asked, hits, falseHits, errors, bytes atomic.Uint64 }

// Stats returns the counts as they are.
func (c *Client) Stats() Stats {
	s := &c.stats
	return Stats{Asked: s.asked.Load(), Hits: s.hits.Load(), FalseHits: s.falseHits.Load(), Errors: s.errors.Load(), Bytes: s.bytes.Load()}
}

// isToken reports whether s is a token (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if strings.IndexByte("0123456789!#$%&'*+-.^_`|~", c) < 0 {
				return false
			}
		}
	}
	return s != ""
}
