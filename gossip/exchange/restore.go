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

// Save returns all replicas that are verified, dead peers' included.
func (e *Engine) Save() []Saved {
	var out []Saved
	for _, p := range e.order {
		if a, ok := e.whole(p.id); ok {
			out = append(out, Saved{p.name, a})
		}
	}
	return out
}

// Restore gives the engine a replica from a former life of this process: what
// [DecodeAnswer] made of a frame saved for peer. It is used once its origin, in the
// same life as then, has confirmed it or sent what changed. Restore replicas before
// the first PeerUp; one of a peer that is already known is ignored.
func (e *Engine) Restore(now time.Time, peer string, r Result) bool {
	if r.Err != nil || r.Filter == nil || r.Head.Origin != IDOf(peer) || e.peers[r.Head.Origin] != nil {
		return false
	}
	if most := e.cfg.ReplicaBytes; most > 0 && e.replicaBytes+r.Filter.MemoryBytes() > most {
		return false
	}
	p := e.find(peer, now)
	if p == nil {
		return false
	}
	p.incarnation = r.Head.Version.Incarnation
	p.held, p.signature = r.Head, r.Signature
	e.setFilter(p, r.Filter)
	p.history = digest.NewHistory(e.cfg.ReplicaLog)
	p.history.Advance(r.Filter)
	p.restored = true
	p.died = now
	if e.expireAt.IsZero() {
		e.expireAt = now.Add(e.cfg.KeepDead)
	}
	return true
}
