package exchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
)

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second

	unusables   = 3 // bad answers in a row before the engine requests a snapshot or waits for refusedWait
	refusedWait = 5 * time.Minute

	denials = 4 // answers of the origin after which a version that it denies is taken not to exist
)

// FetchDone handles the result of a fetch. It ignores a fetch that began in a former life of its
// origin.
func (e *Engine) FetchDone(now time.Time, number uint64, r Result) {
	f := e.flights[number]
	if f == nil {
		return
	}
	delete(e.flights, number)
	if f.snapshot {
		e.snapshotFlights--
	}
	p := f.origin
	if p.flight != f {
		return // a new life of the origin has begun
	}
	p.flight = nil
	defer e.enqueue(p)
	if f.step {
		e.stepDone(now, f, r)
		return
	}
	if r.Err != nil {
		e.fetchFailed(now, f, r)
		return
	}
	switch r.Kind {
	case FrameSame:
		e.same(now, f, r)
	case FrameDelta, FrameSnapshot:
		e.bodyArrived(now, f, r)
	case FrameBusy:
		f.source.busyUntil = now.Add(e.jitter(r.RetryAfter))
		p.elsewhere = f.source == p
	case FrameUnknown:
		e.unknown(now, f)
	}
}

// fetchFailed delays the next attempt, longer each time, and drops a source other than the origin.
func (e *Engine) fetchFailed(now time.Time, f *flight, r Result) {
	p := f.origin
	switch {
	case errors.Is(r.Err, digest.ErrVersion), errors.Is(r.Err, digest.ErrTooLarge), errors.Is(r.Err, digest.ErrSeed):
		// Another attempt helps only if the answer was damaged on its way. After a few of them, the
		// next waits for refusedWait, or until the origin has another epoch.
		e.reject(f, r)
		if p.refusals++; p.refusals >= unusables {
			p.refused = max(1, p.announced.Version.Epoch, p.held.Version.Epoch)
			p.retry.Until = now.Add(e.jitter(refusedWait))
			return
		}
	case errors.Is(r.Err, digest.ErrBase), errors.Is(r.Err, digest.ErrCorrupt), errors.Is(r.Err, ErrMalformed), errors.Is(r.Err, errStale):
		e.reject(f, r)
		if r.Kind == FrameDelta {
			p.badDeltas++
			p.whole = p.whole || p.badDeltas >= unusables
		}
	}
	p.dropHolder(f.source)
	e.backOff(now, p)
}

func (e *Engine) reject(f *flight, r Result) {
	e.stats.Rejected++
	e.emit(Event{Kind: Rejected, Peer: f.origin.name, Source: f.source.name, Head: r.Head, Err: r.Err})
}

func (e *Engine) backOff(now time.Time, p *peer) {
	p.retry.Fail(now, firstRetry, lastRetry)
	p.retry.Until = now.Add(e.jitter(p.retry.Until.Sub(now)))
}

// unknown handles the answer of a source that has nothing, or nothing within the limit.
func (e *Engine) unknown(now time.Time, f *flight) {
	p := f.origin
	if f.source != p {
		e.tryAnother(now, f)
		return
	}
	e.backOff(now, p) // its digest exceeds the limit, or it has only just begun
}

// tryAnother lets the next fetch begin at once, at another source than that of f.
func (e *Engine) tryAnother(now time.Time, f *flight) {
	f.origin.dropHolder(f.source)
	f.origin.retry.Until = now
}

// same handles the answer that the source has nothing newer than the version held.
func (e *Engine) same(now time.Time, f *flight, r Result) {
	p := f.origin
	if f.source != p {
		e.tryAnother(now, f)
		return
	}
	p.check = false
	if e.adopt(p, r) {
		e.confirmed(now, p)
		return
	}
	switch c := r.Head.Version.Compare(p.held.Version); {
	case r.Head.Version.Incarnation != p.incarnation:
		p.check = true // membership does not know this incarnation yet
		e.backOff(now, p)
	case p.state == nothing && r.Head.Version.Sequence == 0 && r.Head.State == 0:
		p.retry.Row = 0 // it publishes nothing
	case p.state == former && c > 0:
		// It differs from the replica in the number of keys, so it is another digest.
		p.whole = true
		p.check = true
		p.retry.Until = now
	case p.state == nothing || c > 0:
		r.Err = fmt.Errorf("exchange: same: %w: a greater version than that of the get", ErrMalformed)
		e.reject(f, r)
		p.check = true
		e.backOff(now, p)
	case c < 0 && p.state == trusted:
		// The origin never published the version held, or this answer is outdated.
		e.become(p, doubted)
		p.check = true
		e.backOff(now, p)
	case c < 0 || r.Head.State != p.held.State:
		e.diverge(p, r.Head) // the origin never published the version held
	default:
		e.confirmed(now, p)
	}
}

// confirmed handles the origin's confirmation that the version held is its newest.
func (e *Engine) confirmed(now time.Time, p *peer) {
	p.confirmed = p.held.Version
	if p.state == former || p.state == doubted {
		e.become(p, trusted)
		e.settle(p, nil)
	}
	e.outputs.Fresh = append(e.outputs.Fresh, p.name)
	if p.announced.Version.Compare(p.held.Version) <= 0 {
		p.retry.Row = 0
		return
	}
	// A greater version was announced. If the origin denies it repeatedly, it does not exist.
	if p.retry.Row >= denials {
		p.announced, p.holders = Head{}, nil
		p.retry.Row = 0
		return
	}
	e.backOff(now, p)
}
