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
// well, or the origin of that host: no longer than four times what the origin takes, if
// that is known, and the sibling, or the others if it is new, takes less.
func (c *Client) hedgeAfter(peer string, origin bool, host string) time.Duration {
	longest := c.cfg.Timeout / 2
	r := c.cfg.Health.look(peer)
	trip := r.trip
	if !trip.known {
		trip = c.cfg.Health.average()
	}
	if after, known := c.hedgeFetch(host); known && trip.known && trip.value < after.Seconds() {
		longest = min(longest, after)
	}
	late, known := r.spread.quantile(0.95)
	if !known {
		return longest
	}
	least := leastHedge
	if origin {
		late, least = originFactor*min(late, longest), leastOriginHedge
	}
	return min(max(late, least), longest)
}

// hedgeFetch returns for how long to wait for a sibling that is itself fetching from the
// origin of that host; known is false if it isn't known what that takes.
func (c *Client) hedgeFetch(host string) (after time.Duration, known bool) {
	first := c.origins.look(host).trip
	return max(time.Duration(originFactor*first.value*float64(time.Second)), leastOriginHedge), first.known
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
