package sibling

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// errOvertaken is the cause ([context.Cause]) with which a request is canceled when another one
// was answered first.
var errOvertaken = errors.New("sibling: another answered first")

// A race is one call of Next: it asks a candidate, or the origin, and if that takes long, also
// the next one. Everything but run is called on one goroutine.
type race struct {
	l          *Lookup
	ctx        context.Context
	conditions http.Header
	ended      chan *attempt
	running    []*attempt
	origin     bool     // it was asked
	held       *attempt // the origin's, if it has ended
	denied     bool     // the budget did not allow a hedge
}

// An attempt is one request to a candidate or to the origin.
type attempt struct {
	to      Ranked // Peer "" = the origin
	started time.Time
	hedge   bool // another request was under way
	cancel  context.CancelCauseFunc

	answer *Answer
	result result
	err    error // the origin's
}

func (a *attempt) toOrigin() bool { return a.to.Peer == "" }

// next asks until there is an answer or nobody is left.
func (r *race) next() (*Answer, error) {
	for {
		if len(r.running) == 0 && !r.start(false) {
			if r.held == nil {
				return nil, context.Cause(r.ctx)
			}
			if r.held.err == nil || len(r.l.later) == 0 || r.ctx.Err() != nil {
				return r.held.answer, r.held.err
			}
			r.l.candidates, r.l.later = r.l.later, nil // the origin failed
			continue
		}
		var late <-chan time.Time
		if after, ok := r.hedgeAfter(); ok {
			late = time.After(after)
		}
		select {
		case done := <-r.ended:
			r.running = slices.DeleteFunc(r.running, func(o *attempt) bool { return o == done })
			if r.good(done) {
				return r.won(done), nil
			}
		case <-late:
			r.hedge()
		}
	}
}

// hedge asks another source as well, if the budget allows it.
func (r *race) hedge() {
	n := &r.l.c.stats.n
	if r.denied = !r.l.c.takeHedge(); r.denied {
		r.l.c.count(&n.HedgesDenied)
		return
	}
	r.l.c.count(&n.Hedges)
	r.start(true)
}

// start asks the next candidate or, if there is none, the origin.
func (r *race) start(hedge bool) bool {
	l := r.l
	if !hedge && !r.origin {
		l.coalesce(r.ctx)
	}
	one := &attempt{started: time.Now(), hedge: hedge}
	switch {
	case r.ctx.Err() == nil && l.take(&one.to):
		l.Asked++
	case l.req.Origin != nil && !r.origin:
		r.origin = true
	default:
		return false
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	one.cancel = cancel
	r.running = append(r.running, one)
	if one.toOrigin() && len(r.running) == 1 { // an origin that is asked alone gets no hedge
		r.run(ctx, one)
	} else {
		go r.run(ctx, one)
	}
	return true
}

// take takes the next candidate that is still worth a request.
func (l *Lookup) take(to *Ranked) (ok bool) {
	for !ok && len(l.candidates) > 0 {
		*to, l.candidates = l.candidates[0], l.candidates[1:]
		ok = to.kind != listed || l.c.cfg.Health.take(to.Candidate)
	}
	if !ok {
		*to = Ranked{}
	}
	return ok
}

// run carries out an attempt.
func (r *race) run(ctx context.Context, one *attempt) {
	if one.toOrigin() {
		one.answer, one.err = r.l.askOrigin(ctx, one.cancel, r.conditions)
	} else {
		one.answer, one.result = r.l.ask(ctx, one.cancel, one.to, r.conditions)
	}
	r.ended <- one
}

// hedgeAfter returns when to ask another source as well; ok is false if none will be asked.
func (r *race) hedgeAfter() (after time.Duration, ok bool) {
	one, l := r.running[0], r.l
	toOrigin := len(l.candidates) == 0
	if r.denied || len(r.running) > 1 || one.toOrigin() || toOrigin && (l.req.Origin == nil || r.origin) {
		return 0, false
	}
	if one.to.wait > 0 {
		after, ok = l.c.hedgeFetch(l.req.URL.Host)
	} else {
		after, ok = l.c.hedgeAfter(one.to.Peer, toOrigin, l.req.URL.Host), true
	}
	return after - time.Since(one.started), ok
}

// good reports whether an attempt has brought a usable answer, and settles it.
func (r *race) good(done *attempt) bool {
	if done.toOrigin() {
		r.held = done
		// An origin in trouble does not overtake a sibling.
		return done.err == nil && (len(r.running) == 0 || done.answer.StatusCode < 500)
	}
	if done.answer != nil && r.l.req.Accept != nil && !r.l.req.Accept(done.answer) {
		done.answer.Body.Close()
		done.answer, done.result = nil, r.l.unusable()
	}
	r.l.settle(done.to, done.result, done.started)
	return done.answer != nil
}

// won ends the race, and cancels the other attempts.
func (r *race) won(winner *attempt) *Answer {
	c := r.l.c
	if winner.hedge {
		c.count(&c.stats.n.HedgesWon)
	}
	if r.origin && !winner.toOrigin() {
		c.count(&c.stats.n.Origins)
	}
	if r.held != nil && r.held != winner && r.held.answer != nil {
		r.held.answer.Body.Close()
	}
	for _, loser := range r.running {
		loser.cancel(errOvertaken)
		if !loser.toOrigin() {
			r.l.settle(loser.to, overtaken, loser.started)
		}
	}
	if n := len(r.running); n > 0 {
		go func() {
			for range n {
				if late := <-r.ended; late.answer != nil {
					late.answer.Body.Close()
				}
			}
		}()
	}
	return winner.answer
}

// askOrigin sends the request to the origin. ctx lasts until the answer's body is closed.
func (l *Lookup) askOrigin(ctx context.Context, cancel context.CancelCauseFunc, conditions http.Header) (*Answer, error) {
	start := time.Now()
	resp, err := l.req.Origin(ctx, conditions)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	a := &Answer{Response: resp, Requested: start, Arrived: time.Now()}
	host := l.req.URL.Host
	l.c.origins.record(outcome{peer: host, kind: other, result: answered, took: a.Arrived.Sub(start)})
	resp.Body = &timed{ReadCloser: resp.Body, from: &l.c.origins, name: host, cancel: cancel}
	return a, nil
}
