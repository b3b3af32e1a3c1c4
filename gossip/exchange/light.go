package exchange

import (
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/planted"
)

// A light peer keeps no digest but its own: PROTOCOL.md, section 16. Full peers keep those of all, light ones
// included, and answer the questions of light ones.

// lightness is the part of an engine's state that concerns light peers.
type lightness struct {
	light    bool      // this peer is light
	since    time.Time // when it began to gather the others' digests; zero if it knows no member
	listed   bool      // a full peer has listed what it holds since then, and all of it is of members
	complete bool      // see Complete
	lookAt   time.Time // when to look whether it is; zero if it is, or knows no member
}

const (
	settleWait   = 2 * time.Second  // from its first member on, a peer learns of others
	completeWait = 30 * time.Second // for the list of a full peer
	givenUp      = 3                // failed fetches after which a digest is not waited for
)

// SetLight says whether this peer is light. One that becomes light forgets all digests of others; one that
// becomes full fetches them all. A new engine is full. Members have to learn of it by [Meta].
func (e *Engine) SetLight(now time.Time, light bool) {
	if e.light == light {
		return
	}
	e.lightness = lightness{light: light}
	e.want, e.waiting = nil, nil
	for _, p := range e.order {
		if light && p.state != nothing {
			e.become(p, nothing)
		}
		p.begin(p.incarnation) // the result of a fetch under way is ignored
		p.queued = false
		e.settle(p, nil)
		if p.live && !light {
			e.since, e.lookAt = now, now
			p.check = true
			e.enqueue(p)
		}
	}
	if len(e.live) > 0 {
		e.eager = eagerSyncs
		e.syncAt = earlier(e.syncAt, now.Add(e.spread(eagerInterval)))
	}
}

// PeerLight informs the engine whether the peer called name is light. Call it before [Engine.PeerUp], and
// when that has changed.
func (e *Engine) PeerLight(now time.Time, name string, light bool) {
	p := e.find(name, now)
	if p == nil || p.light == light {
		return
	}
	p.light = light
	p.repeatAt, p.reacted, p.advertised = time.Time{}, Version{}, Version{}
	if p.live {
		e.advertise(now, p)
	}
}

// gathers reports whether this peer fetches the digests of others.
func (e *Engine) gathers() bool { return !e.light || planted.Fault == "light-fetches" }

// hears reports whether p is sent adverts.
func (p *peer) hears() bool { return !p.light || planted.Fault == "advert-to-light" }

// Complete reports whether this peer can answer for all members: it is full, and has once held the digests of all
// members that it knew and of all that another full peer listed, but for those that it failed to get.
func (e *Engine) Complete() bool { return e.complete || planted.Fault == "answers-early" && !e.light }

// lookComplete finds out whether this peer is complete. While it lacks the list of a full peer, and light peers may ask,
// it exchanges vectors.
func (e *Engine) lookComplete(now time.Time) {
	if e.lookAt.IsZero() || now.Before(e.lookAt) {
		return
	}
	e.lookAt = now.Add(settleWait)
	settled, listed := now.Sub(e.since) >= settleWait, e.listed || now.Sub(e.since) >= completeWait
	asked, lacks := false, !settled
	for _, p := range e.live {
		asked = asked || p.light
		lacks = lacks || !listed && !p.light || p.behind() && !p.holds() && p.attempts < givenUp && p.refused == 0
	}
	if e.complete = !lacks; e.complete {
		e.lookAt = time.Time{}
	} else if asked && !listed {
		e.eager = max(e.eager, 1)
		e.syncAt = earlier(e.syncAt, now)
	}
}

// lists notes the vector of a full peer: while it has heads of peers that are no members yet, this one is not complete.
func (e *Engine) lists(via *peer, heads []Head) {
	e.listed = e.listed || via.live && !via.light && !slices.ContainsFunc(heads, func(h Head) bool {
		p := e.peers[h.Origin]
		return h.Origin != e.id && (p == nil || !p.live)
	})
}

// alone reports whether a vector between this peer and p lists the sender's own digest alone.
func (e *Engine) alone(p *peer) bool { return e.light || p != nil && p.light }

// partner returns a random live peer to exchange vectors with: if there are full ones, and this one is full, one of these.
func (e *Engine) partner() *peer {
	first := e.rng.IntN(len(e.live))
	for i := range e.live {
		if p := e.live[(first+i)%len(e.live)]; e.light || !p.light {
			return p
		}
	}
	return e.live[first]
}

// SumWith returns this peer's part of the sum that it compares with that of the peer called name, by the digests held,
// as [Engine.Sum] does. ok is false if there is no such sum: a light peer does not know what a full one holds.
func (e *Engine) SumWith(name string) (sum uint32, ok bool) {
	p := e.named(name)
	switch {
	case p == nil || e.light && !p.light:
		return 0, false
	case p.light:
		return 0, true
	}
	return e.Sum(), true
}
