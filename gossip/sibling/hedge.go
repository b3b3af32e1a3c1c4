package sibling

import (
	"sync"
	"time"
)

// Another is asked when one has not answered for longer than all but one in
// twenty of its answers took lately, within these bounds. The origin is what
// siblings are there to spare: it is asked only after four times that, and more.
const (
	leastHedge       = 5 * time.Millisecond
	leastOriginHedge = 50 * time.Millisecond
	originFactor     = 4
	defaultBudget    = 0.05
	savedBudget      = 10 // hedges that may come at once after a time without
)

// hedgeAfter returns for how long to wait for a sibling before asking another as
// well, or the origin.
func (c *Client) hedgeAfter(peer string, origin bool) time.Duration {
	longest := c.cfg.Timeout / 2
	late, known := c.cfg.Health.known(peer).late()
	least := leastHedge
	if origin {
		late, least = originFactor*min(late, longest), leastOriginHedge
	}
	if !known {
		return longest
	}
	return min(max(late, least), longest)
}

// A budget bounds hedges to a share of the questions: each question saves that
// share of one.
type budget struct {
	mu    sync.Mutex
	share float64
	saved float64
}

func (b *budget) question() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+b.share, savedBudget)
}

// take reports whether there may be a hedge now.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.saved < 1 {
		return false
	}
	b.saved--
	return true
}
