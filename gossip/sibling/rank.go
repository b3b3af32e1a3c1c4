package sibling

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Ranked is one question that would be asked, and what is expected of it.
type Ranked struct {
	Candidate
	Identity string        // under which the candidate lists the object; "" = unknown
	Odds     float64       // that it has the object, in [0,1]
	Cost     time.Duration // what the object is likely to cost by such questions: the round trip, at least 1 ms, over the odds

	trip        time.Duration // to its answer; 0 = nothing is known yet
	level       int           // of Cost, from 0; √2 times dearer is the next. Within a level the Locator's order holds.
	afterOrigin bool          // the origin, if there is one to ask, is far faster, and asked before
	outside     bool          // it is no member of the cluster: see OutsideLocator
	unlisted    bool          // no digest says that it has the object
	wait        time.Duration // for which its answer may take longer than the deadline, since it is fetching the object
}

// An origin is asked before siblings that are likely to take so many times as long, and
// so much longer. Siblings are there to spare the origin: they may be slower.
const (
	farSlower   = 16
	leastSlower = 50 * time.Millisecond
)

// Plan returns the candidates that Ask would have asked, in their order, and asks none.
func (c *Client) Plan(q LookupRequest) []Ranked { return c.plan(&q) }

func (c *Client) plan(q *LookupRequest) []Ranked {
	if c.cfg.Locator == nil { // the zero Client knows nobody
		return nil
	}
	var steps, found []Ranked
	for i, id := range q.Identities {
		c.cfg.Health.lookups.Add(1)
		found = c.steps(found[:0], c.cfg.Locator.Candidates(nil, id), Ranked{Identity: id})
		if more, ok := c.cfg.Locator.(OutsideLocator); ok && i == 0 {
			found = c.steps(found, more.CandidatesFor(nil, q), Ranked{outside: true})
		}
		slices.SortStableFunc(found, func(a, b Ranked) int { return cmp.Compare(a.level, b.level) })
		for _, s := range found {
			if len(steps) < c.cfg.Max && !slices.ContainsFunc(steps, func(o Ranked) bool { return o.Peer == s.Peer }) {
				steps = append(steps, s)
			}
		}
	}
	if q.URL != nil {
		for i := range steps {
			steps[i].afterOrigin = c.originIsFaster(q.URL.Host, steps[i])
		}
		slices.SortStableFunc(steps, func(a, b Ranked) int {
			switch {
			case a.afterOrigin == b.afterOrigin:
				return 0
			case b.afterOrigin:
				return -1
			}
			return 1
		})
	}
	return steps
}

// steps appends those of the candidates that may be asked, with what is to be expected
// of each. Asking in the order of cost over odds is what finds an object soonest, if each
// candidate has it or not whatever the others do.
func (c *Client) steps(dst []Ranked, found []Candidate, s Ranked) []Ranked {
	h, now := c.cfg.Health, time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s.Candidate = range found {
		r := h.of(s.Peer)
		if !r.available(s.Incarnation, now) {
			continue
		}
		s.trip, s.Odds = r.roundTrip(h.all, now), r.odds(s.FalsePositiveRate, s.Age)
		s.Cost = time.Duration(min(float64(max(s.trip, leastTrip))/s.Odds, float64(time.Hour)))
		s.level = int(2 * math.Log2(float64(s.Cost)/float64(leastTrip)))
		dst = append(dst, s)
	}
	return dst
}

// OriginPace returns what the origin of that host (as in a URL) took lately to an
// answer's header and for each byte after it, in seconds; known is false if it has
// not yet answered with a body long enough to tell.
func (c *Client) OriginPace(host string) (first time.Duration, perByte float64, known bool) {
	r := c.origins.look(host)
	return time.Duration(r.trip.value * float64(time.Second)), r.pace.value, r.pace.known
}

// originIsFaster reports whether the origin of a host should be asked before a sibling:
// both are known, and the origin is far faster with a body of the usual length.
func (c *Client) originIsFaster(host string, s Ranked) bool {
	there, here := c.origins.look(host), c.cfg.Health.look(s.Peer)
	if !there.trip.known || time.Since(here.last) >= forget {
		return false
	}
	c.origins.mu.Lock()
	size := c.origins.size.value
	c.origins.mu.Unlock()
	sibling := s.trip.Seconds() + size*here.pace.value
	origin := there.trip.value + size*there.pace.value
	return sibling > farSlower*origin && sibling > origin+leastSlower.Seconds()
}
