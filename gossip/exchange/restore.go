package exchange

import (
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Save returns this peer's digest and all verified replicas, including those of dead peers, to keep across a
// restart: by the peer's name, the answer to a get for it.
func (e *Engine) Save() map[string]Answer {
	out := make(map[string]Answer)
	if a, ok := e.snapshot(e.id); ok {
		out[e.cfg.Name] = a
	}
	for _, p := range e.order {
		if a, ok := e.snapshot(p.id); ok {
			out[p.name] = a
		}
	}
	return out
}

// adopt makes the replica of a former life of p one of the present life, if r confirms that p
// continues the same digest.
func (e *Engine) adopt(p *peer, r Result) bool {
	h, held := r.Head, p.held
	if p.state != former || held.Version.Incarnation >= p.incarnation || h.Version.Incarnation != p.incarnation {
		return false
	}
	h.Version.Incarnation = held.Version.Incarnation
	if h != held {
		return false
	}
	p.held = r.Head
	e.stats.Adopted++
	return true
}

// Continue publishes f as the successor of former, the filter that this peer published in a former
// life. Inside().Follow of a [digest.Set] returns f and d. Peers that hold former fetch only the
// change. It must be the first publication.
func (e *Engine) Continue(now time.Time, former, f *digest.Filter, d *digest.Delta) {
	e.history.Advance(former)
	if f.Version() != former.Version() {
		e.Publish(now, f, d)
		e.step = ownStep{} // no peer holds the version before in this life
		return
	}
	e.self = headOf(e.id, e.Incarnation(), f)
	e.publishedAt = now
	e.stats.Published++
	e.beginRound(now)
}

// Restore gives the engine a replica from a former life of this process: the result of
// [DecodeAnswer] for a saved frame. It is used when its origin has confirmed it or sent the changes
// since. Restore replicas before the first PeerUp; it returns false for a peer that is already
// known.
func (e *Engine) Restore(now time.Time, peer string, r Result) bool {
	if e.light || r.Err != nil || r.Filter == nil || r.Head.Origin != IDOf(peer) || e.peers[r.Head.Origin] != nil {
		return false
	}
	p := e.find(peer, now)
	if p == nil {
		return false
	}
	p.incarnation = r.Head.Version.Incarnation
	p.held, p.filter = r.Head, r.Filter
	p.history = digest.NewHistory(e.cfg.ReplicaLog)
	p.history.Advance(r.Filter)
	e.become(p, former)
	p.died = now
	if e.expireAt.IsZero() {
		e.expireAt = now.Add(keepDead)
	}
	return true
}
