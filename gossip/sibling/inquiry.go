package sibling

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// A Question asks for one object.
type Question struct {
	URL        *url.URL    // absolute; goes out in the request line
	Host       string      // for the Host field; "" = the URL's
	Header     http.Header // sent as it is; it must contain "Cache-Control: only-if-cached" and no connection fields
	Identities []string    // under which a sibling may list the object, likeliest first

	// Accept says whether an answer is of use; nil = every one is. One that is not
	// counts as a false hit. It must not read the body.
	Accept func(*Answer) bool
	// Origin asks who has the object in any case, when nobody else is left to ask;
	// nil = nobody has. The conditions are those given to Next.
	Origin func(ctx context.Context, conditions http.Header) (*http.Response, error)
}

// An Inquiry asks the candidates for one question, one at a time. It is not
// safe for concurrent use.
type Inquiry struct {
	c          *Client
	q          Question
	candidates []Candidate
	identity   []string // of each candidate

	Asked, FalseHits, Errors int // so far
}

// An Answer is a sibling's copy of an object, or the origin's.
type Answer struct {
	*http.Response
	Peer               string    // the sibling; "" = the origin
	Requested, Arrived time.Time // when it was asked, when its header was there

	identity string
}

// Ask finds the candidates for a question and asks none of them yet.
func (c *Client) Ask(q Question) *Inquiry {
	in := &Inquiry{c: c, q: q}
	var found []Candidate
	for _, id := range q.Identities {
		found = c.cfg.Locator.Candidates(found[:0], id)
		in.add(found, id)
	}
	if more, ok := c.cfg.Locator.(ByQuestion); ok && len(in.candidates) < c.cfg.Max {
		in.add(more.CandidatesFor(found[:0], &q), "")
	}
	return in
}

// add takes over candidates for an identity, up to the limit in all.
func (in *Inquiry) add(found []Candidate, id string) {
	for _, cand := range found {
		if len(in.candidates) == in.c.cfg.Max {
			return
		}
		if !in.has(cand.Peer) {
			in.candidates = append(in.candidates, cand)
			in.identity = append(in.identity, id)
		}
	}
}

func (in *Inquiry) has(peer string) bool {
	for _, c := range in.candidates {
		if c.Peer == peer {
			return true
		}
	}
	return false
}

// Next asks candidates until one has the object, and then the origin, and returns
// the answer, whose body the caller must close. An error is the origin's, or that
// of ctx. Without an origin it returns nil, and no error, when nobody is left to
// ask; the origin can be asked more than once. conditions are added to the
// question's header.
//
// Canceling ctx ends the asking, and breaks off the body of the answer.
func (in *Inquiry) Next(ctx context.Context, conditions http.Header) (*Answer, error) {
	for len(in.candidates) > 0 && ctx.Err() == nil {
		cand, id := in.candidates[0], in.identity[0]
		in.candidates, in.identity = in.candidates[1:], in.identity[1:]
		in.Asked++
		in.c.stats.asked.Add(1)
		start := time.Now()
		a, outcome := in.ask(ctx, cand, conditions)
		if a != nil {
			a.identity = id
		}
		in.settle(Report{Peer: cand.Peer, Identity: id, Outcome: outcome, Latency: time.Since(start)})
		if a == nil {
			continue
		}
		if in.q.Accept == nil || in.q.Accept(a) {
			in.c.stats.hits.Add(1)
			return a, nil
		}
		in.reject(a, FalseHit)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if in.q.Origin == nil {
		return nil, nil
	}
	start := time.Now()
	resp, err := in.q.Origin(ctx, conditions)
	if err != nil {
		return nil, err
	}
	return &Answer{Response: resp, Requested: start, Arrived: time.Now()}, nil
}

// settle counts and reports what became of a question.
func (in *Inquiry) settle(r Report) {
	switch r.Outcome {
	case FalseHit:
		in.FalseHits++
		in.c.stats.falseHits.Add(1)
	case Refused, TimedOut, Failed:
		in.Errors++
		in.c.stats.errors.Add(1)
	}
	in.c.cfg.Locator.Report(r)
}

// Broken tells that the body of a sibling's answer broke off, so that another
// must be asked, and closes it. Reading the body has counted and reported it.
func (in *Inquiry) Broken(a *Answer) {
	a.Body.Close()
	in.Errors++
}

// reject closes an answer that is of no use.
func (in *Inquiry) reject(a *Answer, o Outcome) {
	a.Body.Close()
	in.settle(Report{Peer: a.Peer, Identity: a.identity, Outcome: o, Latency: a.Arrived.Sub(a.Requested)})
}
