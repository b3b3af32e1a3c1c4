package sibling

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// A Question asks for one object.
type Question struct {
	Method     string      // GET or HEAD; "" = GET
	URL        *url.URL    // absolute; goes out in the request line
	Host       string      // for the Host field; "" = the URL's
	Header     http.Header // sent as it is; it must contain "Cache-Control: only-if-cached" and no connection fields
	Identities []string    // under which a sibling may list the object, likeliest first

	// Accept says whether an answer is of use; nil = every one is. One that is not
	// counts as a false hit here, though not against the digest, which was right
	// ([Unusable]). It must not read the body.
	Accept func(*Answer) bool
	// Origin asks who has the object in any case, when nobody else is left to ask;
	// nil = nobody has. The conditions are those given to Next; ctx is canceled for
	// ErrOutrun if a sibling answers first after all.
	Origin func(ctx context.Context, conditions http.Header) (*http.Response, error)
}

// An Inquiry asks the candidates for one question, one after another, and two at
// a time if the first takes long. It is not safe for concurrent use.
type Inquiry struct {
	c     *Client
	q     Question
	steps []Step // whom to ask still
	later []Step // the same, if the origin fails
	only  bool   // no digest names the candidate, see Only

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
func (c *Client) Ask(q Question) *Inquiry {
	in := &Inquiry{c: c, q: q}
	in.steps = c.plan(&in.q)
	if q.Origin != nil {
		i := len(in.steps)
		for i > 0 && in.steps[i-1].AfterOrigin {
			i--
		}
		if i > 0 && c.recent.spares(time.Now()) {
			c.stats.spared.Add(1)
			i = 0
		}
		in.steps, in.later = in.steps[:i:i], in.steps[i:]
	}
	return in
}

// Left returns how many candidates have not been asked.
func (in *Inquiry) Left() int { return len(in.steps) }

// OriginFirst has the origin asked before the candidates that are left, which are
// then asked if it fails.
func (in *Inquiry) OriginFirst() {
	if in.q.Origin != nil {
		in.steps, in.later = nil, append(in.steps, in.later...)
	}
}

// Also adds a candidate that is fetching the object, to be asked last. Its answer
// tells of no digest, so neither it nor its absence is reported to the Locator, but
// that it could not be had.
func (in *Inquiry) Also(c Candidate) {
	in.steps = append(in.steps, Step{Candidate: c})
}

// Only has no other asked than a candidate of which no digest says anything: that it
// does not have the object is no false hit, and not counted.
func (in *Inquiry) Only(c Candidate) {
	in.steps, in.later, in.only = []Step{{Candidate: c}}, nil, true
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
func (in *Inquiry) Next(ctx context.Context, conditions http.Header) (*Answer, error) {
	if in.c == nil {
		return nil, ErrNoSiblings
	}
	if len(in.steps)+len(in.later) == 0 && in.q.Origin != nil {
		return in.askOrigin(ctx, func(error) {}, conditions)
	}
	r := race{in: in, ctx: ctx, conditions: conditions, ended: make(chan *runner, len(in.steps)+len(in.later)+1)}
	return r.next()
}

// settle counts and reports what became of a question.
func (in *Inquiry) settle(done *runner) {
	now := time.Now()
	took := now.Sub(done.started)
	if done.step.Wait > 0 {
		in.waited(done)
		return
	}
	switch done.outcome {
	case Hit, FalseHit, Unusable:
		in.c.cfg.Health.answered(done.step.Peer, took, now)
		in.c.recent.add(done.step.Peer, took, false, now)
	case TimedOut:
		in.c.lost(done.step.Peer, took, in.c.cfg.Health.of(done.step.Peer).unanswered(took, now), now)
	}
	in.report(done.step, done.outcome)
}

// waited settles a question to one that was fetching the object.
func (in *Inquiry) waited(done *runner) {
	switch done.outcome {
	case Hit:
		in.c.stats.waitsWon.Add(1)
	case Refused, Failed:
		in.report(done.step, done.outcome)
	}
}

// report counts what a question brought, and tells the Locator.
func (in *Inquiry) report(to Step, o Outcome) {
	if in.only && o != FalseHit && o != Unusable && o != Canceled {
		in.c.stats.asked.Add(1)
	}
	switch o {
	case Hit:
		in.c.stats.hits.Add(1)
	case FalseHit, Unusable:
		if in.only {
			break
		}
		in.FalseHits++
		in.c.stats.falseHits.Add(1)
	case TimedOut:
		in.Errors++
		in.c.stats.errors.Add(1)
		if in.c.excused() {
			in.c.stats.excused.Add(1)
			o = Canceled // says nothing about the peer
		}
	case Refused, Failed:
		in.Errors++
		in.c.stats.errors.Add(1)
	}
	in.c.report(Report{Peer: to.Peer, Outcome: o}, to.Candidate)
}

// report records what became of a question, and tells the Locator.
func (c *Client) report(r Report, to Candidate) {
	r.Distrust = c.cfg.Health.note(to, r.Outcome)
	c.cfg.Locator.Report(r)
}

// Broken tells that the body of a sibling's answer broke off, so that another
// must be asked, and closes it. Reading the body has counted and reported it.
func (in *Inquiry) Broken(a *Answer) {
	a.Body.Close()
	in.Errors++
}
