package sibling

import "time"

// If a sibling takes longer than its recent answers did, on average and by three times what they differ from that, the
// next one is asked as well, within these bounds. Siblings exist to spare the origin: it is asked only after four times
// as long.
const (
	answersLeast     = 8 // from which on these two are known
	manyOffs         = 3 // as RFC 6298, with 4
	leastHedge       = 5 * time.Millisecond
	leastOriginHedge = 50 * time.Millisecond
	originFactor     = 4
	hedgeShare       = 0.05 // of the requests to siblings may be followed by a hedge
	savedHedges      = 10   // may come at once after a time without
)

// hedgeAfter returns how long to wait for a sibling before asking another one as well or, if
// origin is set, the origin of that host. It is at most four times what the origin takes, if
// that is known and the sibling usually takes less. A new sibling counts as the average.
func (c *Client) hedgeAfter(peer string, origin bool, host string) time.Duration {
	longest := c.cfg.Timeout / 2
	r, trip := c.cfg.Health.look(peer)
	if r.trip.known {
		trip = r.trip
	}
	if after, known := c.hedgeFetch(host); known && trip.known && trip.value < after.Seconds() {
		longest = min(longest, after)
	}
	if r.answers < answersLeast {
		return longest
	}
	late := time.Duration((r.trip.value + manyOffs*r.off.value) * float64(time.Second))
	least := leastHedge
	if origin {
		late, least = originFactor*min(late, longest), leastOriginHedge
	}
	return min(max(late, least), longest)
}

// hedgeFetch returns how long to wait for a sibling that is itself fetching from the origin of
// that host. known is false if the origin's round trip is unknown.
func (c *Client) hedgeFetch(host string) (after time.Duration, known bool) {
	r, _ := c.origins.look(host)
	return max(time.Duration(originFactor*r.trip.value*float64(time.Second)), leastOriginHedge), r.trip.known
}

// A budget limits hedges to a share of the requests to siblings. Each request saves that share
// of a hedge.
type budget struct{ share, saved float64 }

func (b *budget) earn() { b.saved = min(b.saved+b.share, savedHedges) }

// takeHedge reports whether the budget allows a hedge now.
func (c *Client) takeHedge() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hedge.saved < 1 {
		return false
	}
	c.hedge.saved--
	return true
}
