package sibling

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// An Expectation is what asking a candidate is likely to bring.
type Expectation struct {
	RoundTripTime time.Duration // to its answer; 0 = nothing is known yet
	Odds          float64       // that it has the object, in [0,1]
	Cost          time.Duration // what the object is likely to cost by such questions: RoundTripTime/Odds, a round trip counting for at least 1 ms
	Level         int           // of Cost, from 0; √2 times dearer is the next. Within a level the Locator's order holds.
	AfterOrigin   bool          // the origin, if there is one to ask, is far faster, and asked before
}

// A Step is one question that would be asked.
type Step struct {
	Candidate
	Identity string // under which the candidate lists the object; "" = unknown
	Expectation
}

// An origin is asked before siblings that are likely to take so many times as long, and
// so much longer. Siblings are there to spare the origin: they may be slower.
const (
	farSlower   = 16
	leastSlower = 50 * time.Millisecond
)

// Plan returns whom Ask would ask, in that order, and asks nobody.
func (c *Client) Plan(q Question) []Step { return c.plan(&q) }

func (c *Client) plan(q *Question) []Step {
	if c.cfg.Locator == nil { // the zero Client knows nobody
		return nil
	}
	var steps, found []Step
	for i, id := range q.Identities {
		c.cfg.Health.lookups.Add(1)
		found = c.steps(found[:0], c.cfg.Locator.Candidates(nil, id), id)
		if more, ok := c.cfg.Locator.(QuestionLocator); ok && i == 0 {
			found = c.steps(found, more.CandidatesFor(nil, q), "")
		}
		slices.SortStableFunc(found, func(a, b Step) int { return cmp.Compare(a.Level, b.Level) })
		for _, s := range found {
			if len(steps) < c.cfg.Max && !slices.ContainsFunc(steps, func(o Step) bool { return o.Peer == s.Peer }) {
				steps = append(steps, s)
			}
		}
	}
	if now := time.Now(); q.URL != nil {
		for i := range steps {
			steps[i].AfterOrigin = c.afterOrigin(q.URL.Host, steps[i].Peer, steps[i].RoundTripTime, now)
		}
		slices.SortStableFunc(steps, func(a, b Step) int { return order(a.AfterOrigin) - order(b.AfterOrigin) })
	}
	return steps
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// steps appends the candidates for one identity that may be asked, with what is to be
// expected of each. Asking in the order of cost over odds is what finds an object
// soonest, if each candidate has it or not whatever the others do.
func (c *Client) steps(dst []Step, found []Candidate, id string) []Step {
	others, now := c.cfg.Health.average(), time.Now()
	for _, cand := range found {
		if r := c.cfg.Health.of(cand.Peer); r.available(cand.Incarnation, now) {
			dst = append(dst, Step{cand, id, expect(r, cand, others, now)})
		}
	}
	return dst
}

func expect(r *record, cand Candidate, others average, now time.Time) Expectation {
	e := Expectation{RoundTripTime: r.roundTrip(others, now), Odds: r.odds(cand.FalsePositiveRate, cand.Age)}
	cost := float64(max(e.RoundTripTime, leastTrip)) / e.Odds
	e.Cost = time.Duration(min(cost, float64(time.Hour)))
	e.Level = int(2 * math.Log2(float64(e.Cost)/float64(leastTrip)))
	return e
}

// OriginPace returns what the origin of that host (as in a URL) took lately to an
// answer's header and for each byte after it, in seconds; known is false if it has
// not yet answered with a body long enough to tell.
func (c *Client) OriginPace(host string) (first time.Duration, perByte float64, known bool) {
	trip, pace, _ := c.origins.known(host).source()
	return time.Duration(trip.value * float64(time.Second)), pace.value, pace.known
}

// afterOrigin reports whether the origin of a host should be asked before a
// sibling that takes so long to a header: both are known, and the origin is far
// faster with a body of the usual length.
func (c *Client) afterOrigin(host, peer string, roundTrip time.Duration, now time.Time) bool {
	first, perByte, _ := c.origins.known(host).source()
	_, theirs, last := c.cfg.Health.known(peer).source()
	if !first.known || !last.After(now.Add(-forget)) {
		return false
	}
	c.origins.mu.Lock()
	size := c.origins.size.value
	c.origins.mu.Unlock()
	here := roundTrip.Seconds() + size*theirs.value
	there := first.value + size*perByte.value
	return here > farSlower*there && here > there+leastSlower.Seconds()
}
