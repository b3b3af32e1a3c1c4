package exchange

import (
	"time"

	"github.com/summarycache/summarycache/digest"
)

// dropWait is how long a live peer whose replica was dropped for want of memory is
// left alone.
const dropWait = 10 * time.Minute

// setFilter changes p's replica and keeps account of the memory.
func (e *Engine) setFilter(p *peer, f *digest.Filter) {
	if p.filter != nil {
		e.replicaBytes -= p.filter.MemoryBytes()
	}
	if p.filter = f; f != nil {
		e.replicaBytes += f.MemoryBytes()
	}
}

// room makes room for f to be p's replica, if there is a bound: it drops the
// replicas of dead peers, longest dead first, and then those of live peers that
// were of least use for their size. It returns false if p's own would be the next
// to go.
func (e *Engine) room(now time.Time, p *peer, f *digest.Filter) bool {
	most := e.cfg.ReplicaBytes
	if most <= 0 {
		return true
	}
	need := f.MemoryBytes()
	own := 0
	if p.filter != nil {
		own = p.filter.MemoryBytes()
	}
	if need > most {
		return false
	}
	for e.replicaBytes-own+need > most {
		q := e.leastUseful(p)
		if q == nil || q.live && p.live && e.use(q, q.filter) > e.use(p, f) {
			return false
		}
		e.drop(now, q)
	}
	return true
}

// leastUseful returns which replica, other than that of not, to drop first.
func (e *Engine) leastUseful(not *peer) *peer {
	var worst *peer
	for _, p := range e.order {
		if p == not || p.filter == nil {
			continue
		}
		switch {
		case worst == nil,
			worst.live && !p.live,
			worst.live == p.live && !p.live && p.died.Before(worst.died),
			worst.live == p.live && p.live && e.use(p, p.filter) < e.use(worst, worst.filter):
			worst = p
		}
	}
	return worst
}

// use is what a replica is worth: successes for each byte.
func (e *Engine) use(p *peer, f *digest.Filter) float64 {
	hits := 1.0 // so that among the unused the smaller are kept
	if e.cfg.Use != nil {
		hits += e.cfg.Use(p.name)
	}
	return hits / float64(f.MemoryBytes())
}

// drop forgets p's replica and leaves p alone for a while.
func (e *Engine) drop(now time.Time, p *peer) {
	if p.live && p.holds() {
		e.update(p, nil, nil)
	}
	if p.state != Nothing {
		e.become(p, Nothing)
	}
	p.partial = nil
	e.leave(now, p)
	e.stats.Dropped++
	e.emit(Event{Kind: Dropped, Peer: p.name})
}

// leave plans to ask for p's digest again after a while, and not before.
func (e *Engine) leave(now time.Time, p *peer) {
	p.check = true
	p.refused = max(1, p.announced.Version.Epoch)
	p.notBefore = now.Add(e.jitter(dropWait))
	e.enqueue(p)
}
