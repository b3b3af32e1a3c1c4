package exchange

import (
	"slices"
	"time"
)

// A light peer keeps no digest but its own: PROTOCOL.md, section 16. Full peers keep those of all, light ones
// included, and answer the questions of light ones.

// lightness is the part of an engine's state that concerns light peers.
type lightness struct {
	light    bool      // this peer is light
	complete bool      // see Complete
	lookAt   time.Time // when to look whether it is; zero if it is, or knows no member
}

const (
	settleWait = 2 * time.Second // from its first member on, a peer learns of others
	givenUp    = 3               // failed fetches after which a digest is not waited for
)

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

// Complete reports whether this peer can answer for all members: it is full, and has once held the digests of all
// members that it knew some time after it knew the first, but for those that it failed to get.
func (e *Engine) Complete() bool { return e.complete }

// lookComplete finds out whether this peer is complete.
func (e *Engine) lookComplete(now time.Time) {
	if e.lookAt.IsZero() || now.Before(e.lookAt) {
		return
	}
	e.lookAt = now.Add(settleWait)
	if e.complete = !slices.ContainsFunc(e.live, (*peer).awaited); e.complete {
		e.lookAt = time.Time{}
	}
}

// awaited reports whether p's digest is still to be fetched.
func (p *peer) awaited() bool {
	return p.behind() && !p.holds() && p.retry.Row < givenUp && p.refused == 0
}

// alone reports whether a vector between this peer and p lists the sender's own digest alone.
func (e *Engine) alone(p *peer) bool { return e.light || p != nil && p.light }

// partner returns a random live peer to exchange vectors with: if there are full ones, and this one is full, one of
// these.
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
