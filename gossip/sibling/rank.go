package sibling

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A Ranked candidate is one that would be asked, with the expected result.
type Ranked struct {
	Candidate
	Identity string  // under which the candidate advertises the object; "" = unknown
	Odds     float64 // probability that it has the object
	// the expected cost of the object by such requests: the round trip, at least 1 ms, divided by the odds
	Cost time.Duration

	// of Cost, from 0, each √2 times the one before; below 0 if its zone puts it first. Within a level the Locator's
	// order holds.
	level   int
	outside bool          // it is not a member of the cluster: see outsideLocator
	kind    kind          // listed, unlisted or awaited
	wait    time.Duration // added to its deadline, if it is fetching the object
	denied  string        // a keeper that named nobody; "" = none did
}

// An origin is asked before the siblings that are expected to take farSlower times as long as it,
// and leastSlower longer. Siblings exist to spare the origin, so they may be slower.
const (
	farSlower   = 16
	leastSlower = 50 * time.Millisecond
)

// A candidate of this peer's zone goes before all others while its odds are within a factor of zoneOdds of the
// best, and it is not farSlower times as expensive as the cheapest, and leastSlower more. Bytes between zones cost
// money, which no round trip shows.
const zoneOdds = 2

// farSlowerThan reports whether the one time is far longer than the other, in seconds.
func farSlowerThan(one, other float64) bool {
	return one > farSlower*other && one > other+leastSlower.Seconds()
}

// farLevels is more than there are levels of costs of up to an hour.
const farLevels = 64

// ownZoneFirst lowers the levels of the candidates for an identity that go first because they are in this peer's zone.
func ownZoneFirst(found []Ranked) {
	odds, cost := 0.0, time.Duration(math.MaxInt64)
	for _, a := range found {
		odds, cost = max(odds, a.Odds), min(cost, a.Cost)
	}
	for i, a := range found {
		if a.Near && zoneOdds*a.Odds >= odds && !farSlowerThan(a.Cost.Seconds(), cost.Seconds()) {
			found[i].level -= farLevels
		}
	}
}

// plan returns the candidates to ask first, and those to ask after the origin, if there is one,
// since it is far faster.
func (c *Client) plan(r *LookupRequest) (first, later []Ranked) {
	if c.cfg.Locator == nil { // the zero Client
		return nil, nil
	}
	c.cfg.Health.lookedUp(len(r.Identities))
	var all, found []Ranked
	asked, denied := c.ask(r)
	for i, id := range r.Identities {
		var may []Candidate
		if asked != nil {
			may = asked[i]
		} else {
			may = c.cfg.Locator.Candidates(nil, id)
		}
		found = c.rank(found[:0], may, Ranked{Identity: id, denied: denied})
		if more, ok := c.cfg.Locator.(outsideLocator); ok && i == 0 {
			found = c.rank(found, more.CandidatesFor(nil, r), Ranked{outside: true})
		}
		ownZoneFirst(found)
		slices.SortStableFunc(found, func(a, b Ranked) int { return cmp.Compare(a.level, b.level) })
		for _, a := range found {
			if len(all) < c.most && !slices.ContainsFunc(all, func(b Ranked) bool { return a.Peer == b.Peer }) {
				all = append(all, a)
			}
		}
	}
	first = all[:0]
	for _, a := range all {
		if r.URL != nil && c.originIsFaster(r.URL.Host, a) {
			later = append(later, a)
		} else {
			first = append(first, a)
		}
	}
	return first, later
}

// rank appends the candidates that may be asked, with their expected results. If the candidates
// have the object independently of each other, asking in the order of cost over odds
// finds it soonest.
func (c *Client) rank(dst []Ranked, found []Candidate, a Ranked) []Ranked {
	h, now := c.cfg.Health, time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a.Candidate = range found {
		r := h.of(a.Peer)
		worth := h.worthAsking(r, a.FalsePositiveRate, now)
		r.claims++
		if !worth || !r.available(a.Incarnation, now) {
			continue
		}
		r.zone = a.Zone
		a.Odds = r.odds(a.FalsePositiveRate, a.Age)
		a.Cost = time.Duration(min(float64(max(r.roundTrip(h.others(r), now), leastTrip))/a.Odds, float64(time.Hour)))
		a.level = levelOf(a.Cost.Seconds())
		dst = append(dst, a)
	}
	return dst
}

// levelOf returns the level of a cost or a time, in seconds: from 0, each √2 times the one before.
func levelOf(seconds float64) int {
	return int(2 * math.Log2(max(seconds/leastTrip.Seconds(), 1)))
}

// originRoundTrip returns the recent average of the time to the header of an answer of the origin of
// that host (as in a URL); 0 = unknown.
func (c *Client) originRoundTrip(host string) time.Duration {
	r, _ := c.origins.look(host)
	return time.Duration(r.trip.value * float64(time.Second))
}

// originIsFaster reports whether the origin of a host should be asked before a sibling: both are
// known, and with a body of average length the origin costs far less time than the sibling, whose
// false hits count. While this process runs late, what it measured does not show that.
func (c *Client) originIsFaster(host string, s Ranked) bool {
	there, _ := c.origins.look(host)
	here, _ := c.cfg.Health.look(s.Peer)
	if c.late() >= leastSlower/2 || !there.trip.known || time.Since(here.last) >= tripHalfLife {
		return false
	}
	c.origins.mu.Lock()
	size := c.origins.size.value
	c.origins.mu.Unlock()
	sibling := s.Cost.Seconds() + size*here.pace.value
	if s.Zone != "" && !s.Near {
		sibling += time.Duration(c.zoneCost.Load()).Seconds()
	}
	origin := there.trip.value + size*there.pace.value
	return farSlowerThan(sibling, origin)
}
