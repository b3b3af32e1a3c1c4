package exchange

import (
	"time"

	"github.com/summarycache/summarycache/digest"
)

// PROTOCOL.md, 6.3, draws these states of an origin:
//
//   - Current: behind is false.
//   - Behind: queued is set. The peer is in Engine.want, or in Engine.waiting until there is room
//     for another snapshot.
//   - Fetching: flight is not nil, until FetchDone.

// A flight is a fetch under way.
type flight struct {
	origin, source *peer
	get            Get
	snapshot       bool // the answer can only be a snapshot
	step           bool // the answer came in a datagram
}

// enqueue adds p to the list of startFetches if it is behind.
func (e *Engine) enqueue(p *peer) {
	if !p.queued && p.flight == nil && p.behind() && !e.light {
		p.queued = true
		e.want = append(e.want, p)
	}
}

// nextFetch returns when startFetches may be able to start a fetch.
func (e *Engine) nextFetch() time.Time {
	var next time.Time
	if e.full() {
		return next
	}
	if e.snapshotFlights < e.cfg.Fetches && len(e.waiting) > 0 {
		next = e.waiting[0].retry.Until // long past
	}
	for _, p := range e.want {
		switch {
		case !p.behind():
		case p.stepFits():
			next = earlier(next, p.stepAt)
		case e.snapshotFlights < e.cfg.Fetches || !e.expectsSnapshot(p):
			next = earlier(next, p.retry.Until)
		}
	}
	return next
}

// All fetches under way may be smallFetches times as many as those of snapshots: changes are small,
// and many are under way if streams are slow.
const smallFetches = 8

// full reports whether a fetch must end before another can start.
func (e *Engine) full() bool { return len(e.flights) >= smallFetches*e.cfg.Fetches }

// startFetches starts the wanted fetches whose wait is over and that have a source, as long as
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
		case e.full():
		case p.stepFits():
			e.startStep(p)
		case now.Before(p.retry.Until):
		case e.snapshotFlights >= e.cfg.Fetches && e.expectsSnapshot(p):
			// Moved out of the list until there is room: a peer that joins a large cluster waits
			// for thousands of snapshots.
			e.waiting = append(e.waiting, p)
			continue
		default:
			e.startFetch(now, p)
		}
		if p.queued {
			keep = append(keep, p)
		}
	}
	clear(e.want[len(keep):])
	e.want = keep
}

func (e *Engine) startFetch(now time.Time, p *peer) {
	snapshot := e.expectsSnapshot(p)
	if snapshot {
		if wait := p.snapshots.wait(now); wait > 0 {
			p.retry.Until = now.Add(e.jitter(wait))
			return
		}
	}
	source, wait := e.source(now, p)
	if source == nil {
		p.retry.Until = now.Add(wait)
		return
	}
	get := Get{Origin: p.id, Limit: uint64(e.cfg.DigestBytes)}
	var base *digest.Filter
	if p.state == wrong {
		get.Whole = true
	} else if p.state != nothing && !p.whole {
		get.Have, get.State, base = p.held.Version, p.held.State, p.filter
	}
	p.elsewhere = false
	e.stats.Fetches++
	e.start(&flight{origin: p, source: source, get: get, snapshot: snapshot}, Fetch{Base: base})
}

func (e *Engine) start(f *flight, out Fetch) {
	e.number++
	if f.snapshot {
		e.snapshotFlights++
	}
	f.origin.flight, f.origin.queued = f, false
	e.flights[e.number] = f
	out.Number, out.Origin, out.Source, out.Get = e.number, f.origin.name, f.source.name, f.get
	e.outputs.Fetches = append(e.outputs.Fetches, out)
}

// expectsSnapshot reports whether a fetch of p's digest can only return a snapshot.
func (e *Engine) expectsSnapshot(p *peer) bool {
	if p.state == wrong || p.state == nothing || p.whole {
		return true
	}
	return p.announced.Version.Compare(p.held.Version) > 0 && p.announced.Version.Epoch != p.held.Version.Epoch
}

// source chooses the peer to fetch p's digest from, or returns how long to wait for one.
//
// A delta is small, so the origin serves it. A snapshot is large, and each peer that joins needs
// those of all others, so they are fetched from all peers that have them.
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
	if p.state != wrong && !p.check || p.state == nothing {
		for _, h := range p.holders {
			add(h)
		}
	}
	elsewhere := p.elsewhere || p.retry.Row%2 == 1 // every second failure, too
	switch {
	case n == 0:
		return nil, max(p.busyUntil.Sub(now), 0) + e.jitter(firstRetry)
	case originAble && p.state != nothing && !elsewhere:
		return p, 0
	case originAble && elsewhere && n > 1:
		return able[1+e.rng.IntN(n-1)], 0
	}
	return able[e.rng.IntN(n)], 0
}
