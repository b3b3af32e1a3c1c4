package sibling

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// A LookupRequest asks for one object.
type LookupRequest struct {
	Method     string      // GET or HEAD; "" = GET
	URL        *url.URL    // absolute; goes out in the request line
	Host       string      // for the Host field; "" = the URL's
	Header     http.Header // sent as it is; it must contain "Cache-Control: only-if-cached" and no connection fields
	Identities []string    // under which a sibling may list the object, likeliest first

	// Accept says whether an answer is of use; nil = every one is. One that is not
	// counts as a false hit here, though not against the digest, which was right. It
	// must not read the body.
	Accept func(*Answer) bool
	// Origin asks the origin, when nobody else is left to ask; nil = there is none. The
	// conditions are those given to Next; ctx is canceled for ErrOvertaken if a sibling
	// answers first after all.
	Origin func(ctx context.Context, conditions http.Header) (*http.Response, error)
}

// A Lookup asks the candidates for one question, one after another, and two at
// a time if the first takes long. It is not safe for concurrent use.
type Lookup struct {
	c     *Client
	q     LookupRequest
	steps []Ranked // whom to ask next
	later []Ranked // whom to ask if the origin fails

	Asked, FalseHits, Errors int // so far
}

// An Answer is a sibling's copy of an object, or the origin's.
type Answer struct {
	*http.Response
	Peer               string    // the sibling; "" = the origin
	Requested, Arrived time.Time // when it was asked, when its header was there
}

// Ask finds the candidates for a question and asks none of them yet. If many
// questions were lost lately, some are asked of siblings only if the origin fails.
func (c *Client) Lookup(q LookupRequest) *Lookup {
	in := &Lookup{c: c, q: q}
	in.steps = c.plan(&in.q)
	if q.Origin != nil {
		i := len(in.steps)
		for i > 0 && in.steps[i-1].afterOrigin {
			i--
		}
		if i > 0 && c.recent.spares() {
			c.count(&c.stats.n.Spared)
			i = 0
		}
		in.steps, in.later = in.steps[:i:i], in.steps[i:]
	}
	return in
}

// Left returns how many candidates have not been asked.
func (in *Lookup) Left() int { return len(in.steps) }

// OriginFirst has the origin asked before the candidates that are left, which are
// then asked if it fails.
func (in *Lookup) OriginFirst() {
	if in.q.Origin != nil {
		in.steps, in.later = nil, append(in.steps, in.later...)
	}
}

// Also adds a sibling that is fetching the object, to be asked last. It gets two seconds
// more to answer. No digest says that it has the object, so only its failures count.
func (in *Lookup) Also(fetching Peer) {
	in.steps = append(in.steps, Ranked{Candidate: Candidate{Peer: fetching.Name, Service: fetching.Addr}, unlisted: true, wait: fetchWait})
}

// Only has just this sibling asked. No digest says that it has the object, so it is no
// false hit if it doesn't, and is not counted.
func (in *Lookup) Only(p Peer) {
	in.steps, in.later = []Ranked{{Candidate: Candidate{Peer: p.Name, Service: p.Addr}, unlisted: true}}, nil
}

// Next asks candidates until one has the object, and then the origin, and returns
// the answer, whose body the caller must close. If one takes longer than it
// mostly does, the next is asked as well, and the first good answer wins. Candidates
// that are far slower than the origin are asked only if it fails. An error is the
// origin's, or that of ctx. Without an origin it returns nil, and no error,
// when nobody is left to ask; the origin is asked by each call. conditions are
// added to the question's header.
//
// Canceling ctx ends the asking, and breaks off the body of the answer.
func (in *Lookup) Next(ctx context.Context, conditions http.Header) (*Answer, error) {
	if in.c == nil {
		return nil, ErrNoSiblings
	}
	if len(in.steps)+len(in.later) == 0 && in.q.Origin != nil {
		return in.askOrigin(ctx, func(error) {}, conditions)
	}
	r := race{in: in, ctx: ctx, conditions: conditions, ended: make(chan *attempt, len(in.steps)+len(in.later)+1)}
	return r.next()
}

// Broken tells that the body of a sibling's answer broke off, so that another
// must be asked, and closes it. Reading the body has counted and reported it.
func (in *Lookup) Broken(a *Answer) {
	a.Body.Close()
	in.Errors++
}

// An outcome is how a question to a sibling ended.
type outcome uint8

const (
	hit       outcome = iota + 1 // it answered with the object, as it was wanted
	falseHit                     // it answered that it holds no fresh copy (504)
	unusable                     // it has the object, and not as it was wanted: stale by this clock, or by the client's max-age
	timedOut                     // no answer within the deadline
	failed                       // no connection, or an answer that is no answer
	canceled                     // nobody wanted the answer any more, which says nothing about the sibling
	overtaken                    // another answered first that was asked later
)

// settle counts what became of a question to a sibling, and records it.
func (in *Lookup) settle(to Ranked, o outcome, started time.Time) {
	c, n, now := in.c, &in.c.stats.n, time.Now()
	took := now.Sub(started)
	if to.wait > 0 && o != failed { // how long the fetch takes is not the sibling's doing
		if o == hit {
			c.count(&n.FetchesShared)
			c.count(&n.Asked)
			c.count(&n.Hits)
			c.cfg.Health.shared(to.Peer)
		}
		return
	}
	switch o {
	case hit, falseHit, unusable:
		c.cfg.Health.answered(to.Peer, took, now)
		c.recent.add(to.Peer, took, false, now)
	case timedOut, overtaken:
		row := c.cfg.Health.unanswered(to.Peer, took, now)
		if o == overtaken && row < tooOften && took < c.deadline()/2 {
			break
		}
		// A sibling that is silent for half of the deadline, or overtaken time after time, is no
		// better than one that lets the deadline pass. One that never answers is not
		// everybody's trouble.
		if o = timedOut; row <= tooOften {
			c.recent.add(to.Peer, took, true, now)
		}
	}
	if to.unlisted && (o == falseHit || o == unusable || o == canceled) {
		return // no digest said that it has the object
	}
	if to.wait == 0 {
		c.count(&n.Asked)
	}
	switch o {
	case hit:
		c.count(&n.Hits)
	case falseHit, unusable:
		in.FalseHits++
		c.count(&n.FalseHits)
	case overtaken:
		c.count(&n.Overtaken)
	case timedOut, failed:
		in.Errors++
		c.count(&n.Errors)
		if o == timedOut && c.excused() {
			c.count(&n.Excused)
			return
		}
	}
	c.record(to.Candidate, o)
}

// record records what became of a question to a candidate.
func (c *Client) record(to Candidate, o outcome) {
	if c.cfg.Health.note(to, o) {
		c.cfg.Locator.Distrust(to.Peer)
	}
}
