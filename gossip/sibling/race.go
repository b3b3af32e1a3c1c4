package sibling

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// ErrOutrun is the cause ([context.Cause]) by which a request is canceled whose
// answer was overtaken by another's.
var ErrOutrun = errors.New("sibling: another answered first")

// A race is what one call of Next has under way: a candidate, or the origin, and
// if that takes long, the next one beside it. All but run's end happens on one
// goroutine.
type race struct {
	in         *Inquiry
	ctx        context.Context
	conditions http.Header
	ended      chan *runner
	running    []*runner
	origin     bool    // it was asked
	held       *runner // the origin's, if it has ended
	poor       bool    // there was no budget for a hedge
}

// A runner is one question under way.
type runner struct {
	step    Step // of the candidate; Peer "" = the origin
	started time.Time
	hedge   bool // it was asked while another was
	cancel  context.CancelCauseFunc

	answer  *Answer
	outcome Outcome
	err     error // the origin's
}

// next asks until there is an answer.
func (r *race) next() (*Answer, error) {
	for {
		if len(r.running) == 0 && !r.start(false) {
			if r.postponed() {
				continue
			}
			return r.nobody()
		}
		var late <-chan time.Time
		if after, ok := r.hedgeAfter(); ok {
			late = time.After(after)
		}
		select {
		case done := <-r.ended:
			r.running = slices.DeleteFunc(r.running, func(o *runner) bool { return o == done })
			if r.good(done) {
				return r.won(done), nil
			}
		case <-late:
			r.hedge()
		}
	}
}

// hedge asks another besides, if there is budget for it.
func (r *race) hedge() {
	if r.poor = !r.in.c.budget.take(); r.poor {
		r.in.c.stats.unhedged.Add(1)
		return
	}
	r.in.c.stats.hedges.Add(1)
	r.start(true)
}

// postponed has the siblings asked that the origin was asked before, if it failed.
func (r *race) postponed() bool {
	in := r.in
	if r.held == nil || r.held.err == nil || len(in.later) == 0 || r.ctx.Err() != nil {
		return false
	}
	in.steps, in.later = in.later, nil
	return true
}

// nobody ends a race in which nobody is left to ask.
func (r *race) nobody() (*Answer, error) {
	if r.held != nil {
		return r.held.answer, r.held.err
	}
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	return nil, nil
}

// start asks the next candidate or, if there is none, the origin.
func (r *race) start(hedge bool) bool {
	in := r.in
	done := &runner{started: time.Now(), hedge: hedge}
	switch {
	case len(in.steps) > 0 && r.ctx.Err() == nil:
		done.step, in.steps = in.steps[0], in.steps[1:]
		in.Asked++
		switch {
		case done.step.Wait > 0:
			in.c.stats.waits.Add(1)
		case !in.only: // see report
			in.c.stats.asked.Add(1)
			in.c.budget.question()
		}
	case in.q.Origin != nil && !r.origin:
		r.origin = true
	default:
		return false
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	done.cancel = cancel
	r.running = append(r.running, done)
	if done.step.Peer == "" && len(r.running) == 1 { // nothing is asked beside an origin that was asked alone
		r.run(ctx, done)
	} else {
		go func() {
			growStack(0)
			r.run(ctx, done)
		}()
	}
	return true
}

// run has a question answered, by a candidate or the origin.
func (r *race) run(ctx context.Context, done *runner) {
	if done.step.Peer == "" {
		done.answer, done.err = r.in.askOrigin(ctx, done.cancel, r.conditions)
	} else {
		done.answer, done.outcome = r.in.ask(ctx, done.cancel, done.step, r.conditions)
	}
	r.ended <- done
}

// hedgeAfter returns when it is time to ask another besides; ok is false if none is to be.
func (r *race) hedgeAfter() (after time.Duration, ok bool) {
	one := r.running[0]
	toOrigin := len(r.in.steps) == 0
	if r.poor || len(r.running) > 1 || one.step.Peer == "" || toOrigin && (r.in.q.Origin == nil || r.origin) {
		return 0, false
	}
	if one.step.Wait > 0 {
		after, ok = r.in.c.hedgeFetch(r.in.q.URL.Host)
	} else {
		after, ok = r.in.c.hedgeAfter(one.step.Peer, toOrigin, r.in.q.URL.Host), true
	}
	return after - time.Since(one.started), ok
}

// good judges what came of a question, and settles it.
func (r *race) good(done *runner) bool {
	if done.step.Peer == "" {
		r.held = done
		// An origin in trouble does not overtake a sibling.
		return done.err == nil && (len(r.running) == 0 || done.answer.StatusCode < 500)
	}
	if done.answer != nil && r.in.q.Accept != nil && !r.in.q.Accept(done.answer) {
		done.answer.Body.Close()
		done.answer, done.outcome = nil, Unusable
	}
	r.in.settle(done)
	return done.answer != nil
}

// won ends the race: all others are canceled.
func (r *race) won(winner *runner) *Answer {
	if winner.hedge {
		r.in.c.stats.hedgesWon.Add(1)
	}
	if r.origin && winner.step.Peer != "" {
		r.in.c.stats.origins.Add(1)
	}
	if r.held != nil && r.held != winner && r.held.answer != nil {
		r.held.answer.Body.Close()
	}
	for _, loser := range r.running {
		loser.cancel(ErrOutrun)
		if loser.step.Peer != "" {
			r.in.outrun(loser)
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

// outrun counts and reports a question that another answered first. A sibling that
// is silent for half of the deadline, or overtaken time after time, is no better
// than one that lets the deadline pass.
func (in *Inquiry) outrun(loser *runner) {
	now := time.Now()
	took := now.Sub(loser.started)
	outcome, row := Outrun, in.c.cfg.Health.of(loser.step.Peer).unanswered(took, now)
	if row >= tooOften || took >= in.c.deadline()/2 {
		outcome = TimedOut
		in.c.lost(loser.step.Peer, took, row, now)
	} else {
		in.c.stats.outrun.Add(1)
	}
	in.report(loser.step, outcome)
}

// askOrigin asks the origin. Its body keeps ctx alive.
func (in *Inquiry) askOrigin(ctx context.Context, cancel context.CancelCauseFunc, conditions http.Header) (*Answer, error) {
	start := time.Now()
	resp, err := in.q.Origin(ctx, conditions)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	a := &Answer{Response: resp, Requested: start, Arrived: time.Now()}
	host := in.q.URL.Host
	in.c.origins.answered(host, a.Arrived.Sub(start), a.Arrived)
	resp.Body = &released{timed{ReadCloser: resp.Body, from: &in.c.origins, name: host}, cancel}
	return a, nil
}

// released is a body that ends its request's context when it is closed.
type released struct {
	timed
	cancel context.CancelCauseFunc
}

func (b *released) Close() error {
	err := b.timed.Close()
	b.cancel(nil)
	return err
}
