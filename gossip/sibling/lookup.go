package sibling

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/insider"
)

// A LookupRequest asks siblings for one object.
type LookupRequest struct {
	Method     string      // GET or HEAD; "" = GET
	URL        *url.URL    // absolute; sent in the request line
	Host       string      // for the Host field; "" = the URL's
	Header     http.Header // sent as it is; it must contain "Cache-Control: only-if-cached" and no connection fields
	Identities []string    // under which a sibling may advertise the object, likeliest first

	// Context ends the wait for the candidates if the Locator has to ask others for them; nil = it asks as long as it
	// sees fit.
	Context context.Context
	// Accept reports whether an answer is usable; nil = every one is. An answer that is not
	// counts as a false hit in the statistics, but not against the digest, which was right.
	// Accept must not read the body.
	Accept func(*Answer) bool
	// InFlight returns a sibling that is fetching the object or has just fetched it, although no
	// digest advertises it ([NewCoalescer]). fetch is what the origin usually takes; 0 =
	// unknown. It is called once, when no candidate is left, before the origin is asked; nil =
	// nobody knows.
	InFlight func(ctx context.Context, fetch time.Duration) (Peer, bool)
	// Origin sends the request to the origin after all siblings; nil = there is no origin. The
	// conditions are those given to Next. ctx is canceled if a sibling
	// answers first after all.
	Origin func(ctx context.Context, conditions http.Header) (*http.Response, error)
}

// A Lookup asks the candidates for one object, one after another, and two at a time if the
// first takes long. It is not safe for concurrent use.
type Lookup struct {
	c          *Client
	req        LookupRequest
	candidates []Ranked // to be asked next
	later      []Ranked // to be asked if the origin fails
	coalesced  bool     // InFlight was called
	failed     []string // siblings that did not answer

	Asked, FalseHits, Errors int // so far
}

// An Answer is a sibling's copy of an object, or the origin's.
type Answer struct {
	*http.Response
	Peer string // the sibling; "" = the origin
	// the sibling is no member of the cluster (CandidatesFor of a [Locator]), and so knows no invalidation
	Outside            bool
	Requested, Arrived time.Time // when the request was sent, and when the header had arrived
}

// Lookup finds the candidates for an object, and asks none of them yet.
func (c *Client) Lookup(r LookupRequest) *Lookup {
	l := &Lookup{c: c, req: r}
	l.candidates, l.later = c.plan(&l.req)
	if r.Origin == nil {
		l.candidates, l.later = append(l.candidates, l.later...), nil
	}
	return l
}

// Left returns the number of candidates that have not been asked.
func (l *Lookup) Left() int { return len(l.candidates) }

// coalesce makes the sibling that InFlight names a candidate, if there is no other. It gets more time
// to answer, so one that has just failed, for this lookup or others, is not asked. No digest advertises the object
// there, so only failures count against it.
func (l *Lookup) coalesce(ctx context.Context) {
	if l.req.InFlight == nil || l.coalesced || len(l.candidates) > 0 {
		return
	}
	l.coalesced = true
	fetch := l.c.originRoundTrip(l.req.URL.Host)
	first, ok := l.req.InFlight(ctx, fetch)
	if r, _ := l.c.cfg.Health.look(first.Name); ok && r.free(time.Now()) && !slices.Contains(l.failed, first.Name) {
		l.candidates = append(l.candidates, Ranked{Candidate: Candidate{Peer: first.Name, Service: first.Addr}, kind: awaited, wait: atMost(fetch)})
	}
}

// Only makes these siblings the only candidates. No digest advertises the object there: if one
// does not have it, that is no false hit and is not counted.
func (l *Lookup) Only(peers ...Peer) {
	l.candidates, l.later = nil, nil
	for _, p := range peers {
		l.candidates = append(l.candidates, Ranked{Candidate: Candidate{Peer: p.Name, Service: p.Addr}, kind: unlisted})
	}
}

// Next asks candidates until one has the object, and then the origin. It returns the answer,
// whose body the caller must close. If a candidate takes longer than it usually does, the next
// one is asked as well, and the first good answer wins. Candidates that are far slower than the
// origin are asked only if it fails. An error is the origin's or ctx's. If there is no origin
// and no candidate is left, Next returns nil without an error. Each call may ask the origin
// again. conditions are added to the header of the request.
//
// Canceling ctx ends the lookup, and breaks off the body of the answer.
func (l *Lookup) Next(ctx context.Context, conditions http.Header) (*Answer, error) {
	if l.c == nil {
		return nil, errZero
	}
	l.coalesce(ctx)
	if len(l.candidates)+len(l.later) == 0 && l.req.Origin != nil {
		return l.askOrigin(ctx, func(error) {}, conditions)
	}
	r := race{l: l, ctx: ctx, conditions: conditions, ended: make(chan *attempt, len(l.candidates)+len(l.later)+1)}
	return r.next()
}

// Broken reports that the body of a sibling's answer broke off, so that the caller must call
// Next again, and closes the body. Reading the body has counted the error and recorded it in
// the Health.
func (l *Lookup) Broken(a *Answer) {
	a.Body.Close()
	l.Errors++
}

// settle records and counts the result of a request to a sibling.
func (l *Lookup) settle(to Ranked, r result, started time.Time) {
	c, n := l.c, &l.c.stats.n
	late := c.late() // which does not make the sibling slow
	named := to.Via != "" && r == falseHit
	if named {
		r = answered
		c.judge(to)
	}
	r, wrong := c.cfg.Health.record(outcome{peer: to.Peer, kind: to.kind, result: r, took: max(0, time.Since(started)-late),
		late: lateFactor*late >= c.cfg.Timeout, deadline: c.deadline()})
	if wrong {
		c.cfg.Locator.Distrust(to.Peer)
	}
	if named {
		r = falseHit
	} else if asker, ok := c.asker(); ok && to.Via != "" && r == hit {
		asker.Judge(to.Via, insider.Right, false)
		if to.denied != "" {
			_, mistrusted := c.cfg.Health.record(outcome{peer: to.denied, kind: other, result: withheld})
			asker.Judge(to.denied, insider.Withheld, mistrusted)
		}
	}
	if to.kind == listed || r != answered && r != canceled {
		c.count(&n.Asked)
	}
	switch r {
	case shared:
		c.count(&n.FetchesShared)
		fallthrough
	case hit:
		c.count(&n.Hits)
	case falseHit, unusable, tooOld:
		l.FalseHits++
		c.count(&n.FalseHits)
	case overtaken:
		c.count(&n.Overtaken)
	case excused:
		c.count(&n.Excused)
		fallthrough
	case timedOut, failed:
		l.Errors++
		l.failed = append(l.failed, to.Peer)
		c.count(&n.Errors)
	}
}
