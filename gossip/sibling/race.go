package sibling

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// ErrOvertaken is the cause ([context.Cause]) by which a request is canceled when another
// answered first.
var ErrOvertaken = errors.New("sibling: another answered first")

// A race is one call of Next: it asks a candidate, or the origin, and, if that takes
// long, the next one beside it. Everything but run happens on one goroutine.
type race struct {
	in         *Lookup
	ctx        context.Context
	conditions http.Header
	ended      chan *attempt
	running    []*attempt
	origin     bool     // it was asked
	held       *attempt // the origin's, if it has ended
	denied     bool     // there was no budget for a hedge
}

// An attempt is one question under way.
type attempt struct {
	step    Ranked // of the candidate; Peer "" = the origin
	started time.Time
	hedge   bool // it was asked while another was
	cancel  context.CancelCauseFunc

	answer  *Answer
	outcome outcome
	err     error // the origin's
}

func (a *attempt) toOrigin() bool { return a.step.Peer == "" }

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
			r.running = slices.DeleteFunc(r.running, func(o *attempt) bool { return o == done })
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
	n := &r.in.c.stats.n
	if r.denied = !r.in.c.budget.take(); r.denied {
		r.in.c.count(&n.HedgesDenied)
		return
	}
	r.in.c.count(&n.Hedges)
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
	return nil, context.Cause(r.ctx)
}

// start asks the next candidate or, if there is none, the origin.
func (r *race) start(hedge bool) bool {
	in := r.in
	one := &attempt{started: time.Now(), hedge: hedge}
	switch {
	case len(in.steps) > 0 && r.ctx.Err() == nil:
		one.step, in.steps = in.steps[0], in.steps[1:]
		in.Asked++
		in.c.budget.question()
	case in.q.Origin != nil && !r.origin:
		r.origin = true
	default:
		return false
	}
	ctx, cancel := context.WithCancelCause(r.ctx)
	one.cancel = cancel
	r.running = append(r.running, one)
	if one.toOrigin() && len(r.running) == 1 { // nothing is asked beside an origin that was asked alone
		r.run(ctx, one)
	} else {
		go func() {
			growStack(0)
			r.run(ctx, one)
		}()
	}
	return true
}

// run has a question answered, by a candidate or the origin.
func (r *race) run(ctx context.Context, one *attempt) {
	if one.toOrigin() {
		one.answer, one.err = r.in.askOrigin(ctx, one.cancel, r.conditions)
	} else {
		one.answer, one.outcome = r.in.ask(ctx, one.cancel, one.step, r.conditions)
	}
	r.ended <- one
}

// growStack grows the stack of a goroutine that is to run a question to 8 KiB, which that takes.
// At its beginning there is nothing to copy, which growing in steps has to do each time.
//
//go:noinline
func growStack(i int) byte {
	var room [6 << 10]byte
	return room[i%len(room)]
}

// hedgeAfter returns when it is time to ask another besides; ok is false if none is to be.
func (r *race) hedgeAfter() (after time.Duration, ok bool) {
	one, in := r.running[0], r.in
	toOrigin := len(in.steps) == 0
	if r.denied || len(r.running) > 1 || one.toOrigin() || toOrigin && (in.q.Origin == nil || r.origin) {
		return 0, false
	}
	if one.step.wait > 0 {
		after, ok = in.c.hedgeFetch(in.q.URL.Host)
	} else {
		after, ok = in.c.hedgeAfter(one.step.Peer, toOrigin, in.q.URL.Host), true
	}
	return after - time.Since(one.started), ok
}

// good judges what came of a question, and settles it.
func (r *race) good(done *attempt) bool {
	if done.toOrigin() {
		r.held = done
		// An origin in trouble does not overtake a sibling.
		return done.err == nil && (len(r.running) == 0 || done.answer.StatusCode < 500)
	}
	if done.answer != nil && r.in.q.Accept != nil && !r.in.q.Accept(done.answer) {
		done.answer.Body.Close()
		done.answer, done.outcome = nil, unusable
	}
	r.in.settle(done.step, done.outcome, done.started)
	return done.answer != nil
}

// won ends the race: all others are canceled.
func (r *race) won(winner *attempt) *Answer {
	c := r.in.c
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
		loser.cancel(ErrOvertaken)
		if !loser.toOrigin() {
			r.in.settle(loser.step, overtaken, loser.started)
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

// askOrigin asks the origin. Its body keeps ctx alive.
func (in *Lookup) askOrigin(ctx context.Context, cancel context.CancelCauseFunc, conditions http.Header) (*Answer, error) {
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
