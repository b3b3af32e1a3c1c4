package exchange

import (
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Saved is a replica in the form in which it can be kept across a restart: the
// frame that would answer a get for it.
type Saved struct {
	Peer   string
	Answer Answer
}

// Save returns what this peer publishes, and all replicas that are verified, dead
// peers' included.
func (e *Engine) Save() []Saved {
	var out []Saved
	if a, ok := e.snapshot(e.id); ok {
		out = append(out, Saved{e.cfg.Name, a})
	}
	for _, p := range e.order {
		if a, ok := e.snapshot(p.id); ok {
			out = append(out, Saved{p.name, a})
		}
	}
	return out
}

// adopt makes the replica of a former life of p one of the present life, if p has confirmed
// that it has the same digest, with a signature if it signs.
func (e *Engine) adopt(p *peer, r Result) bool {
	h, held := r.Head, p.held
	if p.state != former || held.Version.Incarnation >= p.incarnation || h.Version.Incarnation != p.incarnation ||
		h.State != held.State || h.Keys != held.Keys || len(p.key) > 0 && len(r.Signature) == 0 {
		return false
	}
	h.Version.Incarnation = held.Version.Incarnation
	if h != held {
		return false
	}
	p.held, p.signature = r.Head, r.Signature
	e.stats.Adopted++
	return true
}

// Continue publishes f, which follows by d the filter former that this peer published in a
// former life; [digest.CountingFilter.Follow] returns f and d. Peers that hold former
// need only the change. It must be the first publication.
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

// Restore gives the engine a replica from a former life of this process: what
// [DecodeAnswer] made of a frame saved for peer. It is used after its origin has
// confirmed it or sent what changed. Restore replicas before
// the first PeerUp; that of a peer that is already known is ignored.
func (e *Engine) Restore(now time.Time, peer string, r Result) bool {
	if r.Err != nil || r.Filter == nil || r.Head.Origin != IDOf(peer) || e.peers[r.Head.Origin] != nil {
		return false
	}
	p := e.find(peer, now)
	if p == nil {
		return false
	}
	p.incarnation = r.Head.Version.Incarnation
	p.held, p.filter, p.signature = r.Head, r.Filter, r.Signature
	p.history = digest.NewHistory(e.cfg.ReplicaLog)
	p.history.Advance(r.Filter)
	e.become(p, former)
	p.died = now
	if e.expireAt.IsZero() {
		e.expireAt = now.Add(keepDead)
	}
	return true
}
