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

// Plan returns whom Ask would ask, in that order, and asks nobody.
func (c *Client) Plan(q Question) []Step {
	var steps []Step
	add := func(found []Candidate, id string) {
		for _, s := range c.ranked(found, id) {
			if len(steps) < c.cfg.Max && !slices.ContainsFunc(steps, func(o Step) bool { return o.Peer == s.Peer }) {
				steps = append(steps, s)
			}
		}
	}
	for _, id := range q.Identities {
		add(c.cfg.Locator.Candidates(nil, id), id)
	}
	if more, ok := c.cfg.Locator.(QuestionLocator); ok && len(steps) < c.cfg.Max {
		add(more.CandidatesFor(nil, &q), "")
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

// RoundTripTime returns what a round trip to a sibling took lately, from a question to
// the answer's header; 0 = it never answered.
func (c *Client) RoundTripTime(peer string) time.Duration {
	r := c.records.of(peer)
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.trip.value * float64(time.Second))
}

// ranked puts candidates for one identity in the order of their cost. Asking in
// the order of cost over odds is what finds an object soonest, if each candidate
// has it or not whatever the others do.
func (c *Client) ranked(found []Candidate, id string) []Step {
	steps := make([]Step, len(found))
	others, now := c.records.average(), time.Now()
	for i, cand := range found {
		steps[i] = Step{cand, id, expect(c.records.of(cand.Peer), cand, others, now)}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.Level, b.Level) })
	return steps
}

func expect(r *record, cand Candidate, others average, now time.Time) Expectation {
	e := Expectation{RoundTripTime: r.roundTrip(others, now), Odds: r.odds(cand.FalsePositiveRate, cand.Age)}
	cost := float64(max(e.RoundTripTime, leastTrip)) / e.Odds
	e.Cost = time.Duration(min(cost, float64(time.Hour)))
	e.Level = int(2 * math.Log2(float64(e.Cost)/float64(leastTrip)))
	return e
}
