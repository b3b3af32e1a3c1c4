package exchange

import (
	"slices"
	"time"
)

// HandleDatagram handles a datagram of this protocol. b is not retained.
func (e *Engine) HandleDatagram(now time.Time, b []byte) {
	var kind advertKind
	if len(b) > 0 {
		kind = advertKind(b[0]&0xf) &^ byID
	}
	var err error
	switch kind {
	case stepping:
		var s Step
		if s, err = DecodeStep(b); err == nil {
			e.datagramIn(len(b), len(s.Change))
			e.handleStep(now, &s)
		}
	case reminder, receipt:
		var n note
		if n, err = decodeNote(b); err == nil {
			e.datagramIn(len(b), 0)
			e.handleNote(now, n)
		}
	default:
		var a Advert
		if a, err = DecodeAdvert(b); err == nil {
			e.datagramIn(len(b), 0)
			e.handleAdvert(now, a)
		}
	}
	if err != nil {
		e.stats.AdvertBytesReceived += int64(len(b))
	}
}

// datagramIn counts a datagram, given its length and that of the change in it.
func (e *Engine) datagramIn(bytes, change int) {
	e.stats.AdvertsReceived++
	e.stats.AdvertBytesReceived += int64(bytes - change)
	e.stats.CarriedBytesReceived += int64(change)
}

func (e *Engine) handleAdvert(now time.Time, a Advert) {
	switch {
	case a.Kind == echo:
		if a.Head.Origin == e.id {
			e.handleOwnHead(now, a.Head)
		}
	case a.Head.Origin == e.id:
	case a.Kind == Farewell:
		if p := e.peers[a.Head.Origin]; p != nil && p.incarnation == a.Head.Version.Incarnation {
			e.emit(Event{Kind: Leaving, Peer: p.name, Head: a.Head})
		}
	default:
		// If membership does not know this incarnation yet, PeerUp will start the fetch.
		p := e.peers[a.Head.Origin]
		switch {
		case p == nil || a.Head.Version.Incarnation > p.incarnation:
		case p.live:
			e.handleClaim(now, p, a.Head, p)
		case a.Head.Version.Incarnation == p.incarnation:
			e.outputs.NotDead = append(e.outputs.NotDead, p.name)
		}
	}
}

// handleOwnHead handles a head of this peer's own digest that another peer has sent.
func (e *Engine) handleOwnHead(now time.Time, h Head) {
	// The greatest number is ignored, since there is no greater one to take.
	if h.Version.Incarnation > e.Incarnation() && h.Version.Incarnation+1 != 0 {
		e.displace(now, h.Version.Incarnation)
	}
}

// handleClaim handles the claim of via to have p's digest at head h. If the claim is an advert, via is p.
func (e *Engine) handleClaim(now time.Time, p *peer, h Head, via *peer) {
	if h.Version.Incarnation != p.incarnation {
		if via == p && h.Version.Incarnation < p.incarnation {
			e.send(p, Advert{echo, Head{Origin: p.id, Version: Version{Incarnation: p.incarnation}}})
		}
		return
	}
	if e.light {
		return
	}
	if p.refused != 0 && h.Version.Epoch > p.refused {
		p.refused, p.refusals = 0, 0
		p.retry.Until = now
	}
	if via == p {
		e.reachable(now, p)
	}
	switch c := h.Version.Compare(p.held.Version); {
	case c < 0:
		if via == p && p.confirmed != p.held.Version && now.Sub(p.installedAt) >= lateAdvert {
			e.contest(now, p) // it never published the version held here, or it was restarted
		}
	case c == 0:
		e.compare(now, p, h, via)
	default:
		if h.Version.Compare(p.announced.Version) > 0 {
			if p.announced.Version.Compare(p.held.Version) <= 0 {
				p.announcedAt = now
				p.byAdvert = via == p
			}
			p.announced, p.holders = h, nil
		}
		if via != p && h.Version == p.announced.Version && !slices.Contains(p.holders, via) {
			if len(p.holders) == maxHolders {
				p.dropHolder(p.holders[e.rng.IntN(maxHolders)])
			}
			p.holders = append(p.holders, via)
		}
		e.enqueue(p)
	}
}

// reachable shortens the wait after failed gets, since a message of p has arrived.
func (e *Engine) reachable(now time.Time, p *peer) {
	if p.retry.Row > 0 && p.refused == 0 {
		if soon := now.Add(e.jitter(firstRetry)); soon.Before(p.retry.Until) {
			p.retry.Until = soon
		}
	}
}

// compare compares the replica with the head that via claims for the same version.
func (e *Engine) compare(now time.Time, p *peer, h Head, via *peer) {
	if p.state == nothing || p.state == wrong || p.held.Version != h.Version {
		return
	}
	if p.held.State == h.State {
		if via == p {
			e.outputs.Fresh = append(e.outputs.Fresh, p.name)
			if p.confirmed != h.Version {
				// It came from another peer or in a step, so the origin does not know that it arrived.
				e.note(p, receipt, h.mark())
			}
		}
		return
	}
	// One of the two is wrong. Adverts and vectors are easily forged, so the origin is asked over a
	// stream.
	e.stats.Contested++
	e.contest(now, p)
}

// contest asks the origin whether the replica is right, at most once per contestEvery.
func (e *Engine) contest(now time.Time, p *peer) {
	if p.state != nothing && (now.Sub(p.contestedAt) >= contestEvery || p.contestedAt.IsZero()) {
		p.contestedAt = now
		p.check = true
		e.enqueue(p)
	}
}

// lateAdvert is for how long adverts of earlier versions may still arrive after a version was
// installed.
const lateAdvert = 2 * time.Second

// contestEvery is the least time between two gets to one origin because of contradictions.
const contestEvery = time.Second

// diverge begins the repair of a replica that differs from its origin's digest, whose head is h.
func (e *Engine) diverge(p *peer, h Head) {
	e.become(p, wrong) // lookups do not use it until it is repaired
	e.settle(p, nil)
	p.floor = h.Version
	if p.diverged != h.Version {
		p.diverged = h.Version
		e.stats.Divergences++
		e.emit(Event{Kind: Diverged, Peer: p.name, Head: h})
	}
	e.enqueue(p)
}

// Distrust makes the engine replace the replica of a peer by a snapshot of the origin. It is for a
// caller that has found the replica to be wrong.
func (e *Engine) Distrust(name string) {
	if p := e.named(name); p != nil && p.holds() {
		e.diverge(p, p.held)
	}
}
