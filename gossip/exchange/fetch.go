package exchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A flight is a fetch under way.
type flight struct {
	origin, source *peer
	incarnation    uint64
	get            Get
	snapshot       bool // it can only bring a snapshot
	carried        bool // the answer came with an advert
}

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// brokenMost is how many streams that broke within the answer count as attempts:
	// the source is there, and believes to have answered. So they delay the next one by
	// no more than an advert is repeated after.
	brokenMost = 5

	unusables   = 3 // of an origin's digest in a row, until it is left alone
	refusedWait = 5 * time.Minute

	denials = 4 // by the origin, until an announced version is taken not to exist
)

// enqueue lets startFetches consider p.
func (e *Engine) enqueue(p *peer) {
	if !p.queued && p.behind() {
		p.queued = true
		e.want = append(e.want, p)
	}
}

// nextFetch returns when startFetches may find something to do.
func (e *Engine) nextFetch() time.Time {
	var next time.Time
	if e.full() {
		return next
	}
	if e.snapshotFlights < e.cfg.Fetches && len(e.waiting) > 0 {
		next = e.waiting[0].notBefore // long past
	}
	for _, p := range e.want {
		switch {
		case p.fetching != 0 || !p.behind():
		case p.carriedFits():
			next = earlier(next, p.carriedAt)
		case e.snapshotFlights < e.cfg.Fetches || !e.expectsSnapshot(p):
			next = earlier(next, p.notBefore)
		}
	}
	return next
}

// smallFetches is how many times as many fetches may be under way as may bring a
// snapshot: changes are small, and where streams are slow there are many of them.
const smallFetches = 8

// full reports whether nothing can be fetched before something has come.
func (e *Engine) full() bool { return len(e.flights) >= smallFetches*e.cfg.Fetches }

// startFetches starts what is wanted, may start, and has a source, as long as
// there is room.
func (e *Engine) startFetches(now time.Time) {
	if e.full() {
		return
	}
	if room := e.cfg.Fetches - e.snapshotFlights; room > 0 {
		n := min(room, len(e.waiting))
		e.want = append(e.want, e.waiting[:n]...)
		e.waiting = e.waiting[n:]
	}
	keep := e.want[:0]
	for _, p := range e.want {
		switch {
		case !p.behind():
			p.queued = false
			continue
		case p.fetching != 0, e.full():
		case p.carriedFits():
			e.unpack(p)
		case now.Before(p.notBefore):
		case e.snapshotFlights >= e.cfg.Fetches && e.expectsSnapshot(p):
			// Out of the way: who joins a large cluster waits for thousands.
			e.waiting = append(e.waiting, p)
			continue
		default:
			e.startFetch(now, p)
		}
		keep = append(keep, p)
	}
	clear(e.want[len(keep):])
	e.want = keep
}

func (e *Engine) startFetch(now time.Time, p *peer) {
	if wait := e.in.wait(now); wait > 0 {
		p.notBefore = now.Add(e.jitter(wait))
		return
	}
	snapshot := e.expectsSnapshot(p)
	if snapshot {
		if wait := p.snapshots.wait(now); wait > 0 {
			p.notBefore = now.Add(e.jitter(wait))
			return
		}
	}
	source, wait := e.source(now, p)
	if source == nil {
		p.notBefore = now.Add(wait)
		return
	}
	get := Get{Origin: p.id, Limit: uint64(e.cfg.DigestBytes)}
	var base *digest.Filter
	if p.distrusted {
		get.Whole = true
	} else if p.filter != nil && p.badDeltas < unusables {
		get.Have, get.State, base = p.held.Version, p.held.State, p.filter
	}
	partial := e.resumable(now, p)
	if partial != nil && !get.Whole {
		get.Resume = partial.resume()
	}
	e.stats.Fetches++
	e.start(&flight{origin: p, source: source, incarnation: p.incarnation, get: get, snapshot: snapshot},
		Fetch{Base: base, Key: p.key, Partial: partial})
}

func (e *Engine) start(f *flight, out Fetch) {
	e.number++
	if f.snapshot {
		e.snapshotFlights++
	}
	f.origin.fetching = e.number
	e.flights[e.number] = f
	out.Number, out.Origin, out.Source, out.Get = e.number, f.origin.name, f.source.name, f.get
	e.outputs.Fetches = append(e.outputs.Fetches, out)
}

// expectsSnapshot reports whether a fetch of p can only bring a snapshot.
func (e *Engine) expectsSnapshot(p *peer) bool {
	if p.distrusted || p.filter == nil || p.badDeltas >= unusables {
		return true
	}
	return p.announced.Version.Compare(p.held.Version) > 0 && p.announced.Version.Epoch != p.held.Version.Epoch
}

// source picks whom to ask for p's digest, or says how long to wait.
//
// What has changed since the version held is little: the origin serves it. A
// snapshot is much, and everyone who joins wants all of them: then all who
// have it are asked alike.
func (e *Engine) source(now time.Time, p *peer) (*peer, time.Duration) {
	var able [maxHolders + 1]*peer
	n := 0
	add := func(s *peer) {
		if s.live && !now.Before(s.busyUntil) {
			able[n] = s
			n++
		}
	}
	add(p)
	originAble := n == 1
	if !p.distrusted && !p.check || p.filter == nil {
		for _, h := range p.holders {
			if h.version.Compare(p.announced.Version) >= 0 {
				add(h.peer)
			}
		}
	}
	switch {
	case n == 0:
		return nil, max(p.busyUntil.Sub(now), 0) + e.jitter(firstRetry)
	case originAble && p.filter != nil && p.attempts%2 == 0:
		return p, 0
	case originAble && p.attempts%2 == 1 && n > 1:
		return able[1+e.rng.IntN(n-1)], 0
	}
	return able[e.rng.IntN(n)], 0
}

// FetchDone says what came of a fetch. An answer to a fetch that does not matter
// any more is ignored.
func (e *Engine) FetchDone(now time.Time, number uint64, r Result) {
	f := e.flights[number]
	if f == nil {
		return
	}
	delete(e.flights, number)
	if f.snapshot {
		e.snapshotFlights--
	}
	e.in.take(r.Bytes)
	p := f.origin
	if p.fetching != number || p.incarnation != f.incarnation {
		e.enqueue(p)
		return // a new life of the origin began meanwhile
	}
	p.fetching = 0
	defer e.enqueue(p)
	if f.carried {
		e.unpacked(now, f, r)
		return
	}
	if r.Err != nil {
		e.fetchFailed(now, f, r)
		return
	}
	switch r.Kind {
	case FrameSame:
		e.stats.Unchanged++
		e.same(now, f, r)
	case FrameDelta, FrameSnapshot:
		e.bodyArrived(now, f, r)
	case FrameBusy:
		e.stats.Busy++
		f.source.busyUntil = now.Add(e.jitter(r.RetryAfter))
		if f.source == p {
			// Others may have it; if not, source waits for the origin.
			p.attempts |= 1
		}
	case FrameUnknown:
		e.unknown(now, f)
	}
}

// fetchFailed waits longer each time, and turns to another source.
func (e *Engine) fetchFailed(now time.Time, f *flight, r Result) {
	p := f.origin
	if e.keepPartial(now, f, r) {
		e.stats.Failures++
		p.notBefore = now.Add(e.jitter(firstRetry))
		return
	}
	switch {
	case errors.Is(r.Err, digest.ErrVersion), errors.Is(r.Err, digest.ErrTooLarge), errors.Is(r.Err, digest.ErrSeed):
		// Nothing that repeating could change, unless the answer was damaged on its
		// way: after some attempts leave it, until the origin changes or for long.
		e.reject(f, r)
		if p.refusals++; p.refusals >= unusables {
			p.refused = max(1, p.announced.Version.Epoch, p.held.Version.Epoch)
			p.notBefore = now.Add(e.jitter(refusedWait))
			return
		}
	case errors.Is(r.Err, digest.ErrBase), errors.Is(r.Err, digest.ErrCorrupt), errors.Is(r.Err, ErrMalformed), errors.Is(r.Err, ErrForged):
		e.reject(f, r)
		if r.Kind == FrameDelta {
			p.badDeltas++ // some more, and it has to be a snapshot
		}
	default:
		e.stats.Failures++
	}
	if f.source != p {
		p.dropHolder(f.source)
	}
	e.backOff(now, p)
	if errors.Is(r.Err, ErrBroken) {
		p.attempts = min(p.attempts, brokenMost)
	}
}

func (e *Engine) reject(f *flight, r Result) {
	e.stats.Rejected++
	e.emit(Event{Kind: Rejected, Peer: f.origin.name, Source: f.source.name, Head: r.Head, Err: r.Err})
}

func (e *Engine) backOff(now time.Time, p *peer) {
	wait := min(firstRetry<<min(p.attempts, 10), lastRetry)
	p.attempts++
	p.notBefore = now.Add(e.jitter(wait))
}

// unknown handles a source that has nothing to give.
func (e *Engine) unknown(now time.Time, f *flight) {
	p := f.origin
	p.partial = nil // it may be what cannot be completed
	if f.source != p {
		p.dropHolder(f.source)
		p.notBefore = now
		return
	}
	// The origin itself: it has more than the limit, or has only just begun.
	e.backOff(now, p)
}

// same handles the answer that there is nothing newer than what is held.
func (e *Engine) same(now time.Time, f *flight, r Result) {
	p := f.origin
	if f.source != p {
		p.dropHolder(f.source)
		p.notBefore = now
		return
	}
	p.check = false
	if e.adopt(p, r) {
		e.confirmed(now, p)
		return
	}
	switch c := r.Head.Version.Compare(p.held.Version); {
	case r.Head.Version.Incarnation != p.incarnation:
		p.check = true // membership does not know yet
		e.backOff(now, p)
	case p.filter == nil && r.Head.Version.Sequence == 0 && r.Head.State == 0:
		p.attempts = 0 // it publishes nothing
	case p.filter == nil || c > 0:
		r.Err = fmt.Errorf("exchange: same: %w: it is not", ErrMalformed)
		e.reject(f, r)
		p.check = true
		e.backOff(now, p)
	case c < 0 && !p.doubted:
		// It never published what is held here, if this is no answer of the past.
		p.doubted, p.check = true, true
		e.backOff(now, p)
	case c < 0 || r.Head.State != p.held.State:
		e.diverge(p, r.Head) // it never published what is held here
	default:
		e.confirmed(now, p)
	}
}

// confirmed handles the origin's word that what is held is its newest version.
func (e *Engine) confirmed(now time.Time, p *peer) {
	p.confirmed = p.held.Version
	p.doubted = false
	if p.restored {
		p.restored = false
		if p.live && p.holds() {
			e.update(p, p.filter, nil)
		}
	}
	e.outputs.Fresh = append(e.outputs.Fresh, p.name)
	if p.announced.Version.Compare(p.held.Version) <= 0 {
		p.attempts = 0
		return
	}
	// Somebody announced more. If the origin goes on denying it, that is final.
	if p.attempts >= denials {
		p.announced, p.holders = Head{}, nil
		p.attempts = 0
		return
	}
	e.backOff(now, p)
}
