package exchange

import "time"

const (
	eagerSyncs    = 3 // after joining
	eagerInterval = 200 * time.Millisecond
	syncRetry     = 500 * time.Millisecond // after a sync that failed, doubled by chance

	// The least time between two exchanges of vectors because sums differ. While all peers publish,
	// sums always differ, and the next change shows which datagrams were lost.
	leastStream   = 2 * time.Second
	streamPerPeer = 32 * time.Millisecond

	// staleAgreement is the number of intervals for which an equal sum replaces exchanges of
	// vectors. If datagrams cease to arrive, vectors still arrive by stream.
	staleAgreement = 6
)

// startSync exchanges vectors with a random peer if this peer has just joined, or if no sum was
// equal for long.
func (e *Engine) startSync(now time.Time) {
	if e.syncAt.IsZero() || now.Before(e.syncAt) || len(e.live) == 0 {
		return
	}
	mean := e.cfg.syncInterval(len(e.live))
	eager := e.eager > 0
	if eager {
		e.eager--
		mean = min(mean, eagerInterval)
	}
	e.syncAt = now.Add(e.spread(mean))
	p := e.partner()
	if eager || now.Sub(e.agreedAt) > staleAgreement*mean && !now.Before(e.streamAt) {
		e.exchangeVectors(now, p)
	}
}

// exchangeVectors begins to exchange vectors with p.
func (e *Engine) exchangeVectors(now time.Time, p *peer) {
	e.streamAt = now.Add(max(leastStream, time.Duration(len(e.live))*streamPerPeer))
	e.stats.Syncs++
	e.outputs.Syncs = append(e.outputs.Syncs, Sync{Peer: p.name, Heads: e.vector(p)})
}

// Sum returns a hash of all live members, including this one, and of the version held of each
// one's digest. Peers that know the same have the same sum. They send it in each answer to a
// probe of membership. That of a light peer is 0.
func (e *Engine) Sum() uint32 {
	if e.light {
		return 0
	}
	return uint32(e.known + e.self.sum())
}

// HandleSum handles the sum in a peer's answer to a probe, which equals this peer's or does not. If
// sums differ repeatedly, one of the peers lacks a version, and vectors are exchanged.
func (e *Engine) HandleSum(now time.Time, name string, equal bool) {
	p := e.named(name)
	if p == nil || !p.live {
		return
	}
	e.reachable(now, p)
	if equal && p.light && !e.light { // which says nothing about digests
		e.membersAgreedAt, p.differed, p.noNews = now, false, 0
		return
	}
	if equal {
		e.stats.Agreed++
		e.agreedAt, e.differed, p.differed, p.noNews = now, false, false, 0
		p.reacted = e.self.Version
		e.outputs.Fresh = append(e.outputs.Fresh, p.name)
		return
	}
	// A single difference may be a change on its way. A peer that restarted and knows no other
	// probes nobody. It is found because its own sum differs twice, whatever others answer.
	if (e.differed || p.differed) && !now.Before(e.streamAt) {
		e.exchangeVectors(now, p)
	}
	e.differed, p.differed = true, true
}

// AgreedAt returns when another peer last had the same sum; the zero Time if none ever had.
func (e *Engine) AgreedAt() time.Time {
	if e.membersAgreedAt.After(e.agreedAt) {
		return e.membersAgreedAt
	}
	return e.agreedAt
}

// TakeAtOdds returns a live peer whose sum differs although its last two vectors had no news; "" if
// there is none. The two peers differ in something that vectors do not list, such as the metadata
// of a member. The same peer is returned again only after two more such vectors, since it may be
// unreachable.
func (e *Engine) TakeAtOdds() string {
	for _, p := range e.live {
		if p.differed && p.noNews > 1 {
			p.noNews = 0
			return p.name
		}
	}
	return ""
}

// vector returns the heads of all verified replicas and of this peer's digest, by ID, for p.
func (e *Engine) vector(p *peer) []Head {
	heads := make([]Head, 0, len(e.order)+1)
	e.each(p, func(h Head) { heads = append(heads, h) })
	return heads
}

// each calls f for every head that a vector for to lists, by ID.
func (e *Engine) each(to *peer, f func(Head)) {
	own := e.published()
	if e.alone(to) {
		if own {
			f(e.self)
		}
		return
	}
	for _, p := range e.order {
		if own && e.id < p.id {
			f(e.self)
			own = false
		}
		if p.holds() && p.live {
			f(p.held)
		}
	}
	if own {
		f(e.self)
	}
}

// SyncDone handles the vector by which a peer answered a sync, or the error. heads must be in order
// of Origin, as [DecodeVector] ensures.
func (e *Engine) SyncDone(now time.Time, name string, heads []Head, err error) {
	if err != nil {
		if !e.syncAt.IsZero() {
			e.syncAt = earlier(e.syncAt, now.Add(e.spread(syncRetry)))
		}
		return
	}
	if p := e.named(name); p != nil {
		if p.noNews++; len(heads) > 0 && !e.alone(p) {
			p.noNews = 0
		}
	}
	e.handleVector(now, name, heads)
}

// HandleSync handles a sync from name and returns the vector for the answer.
func (e *Engine) HandleSync(now time.Time, name string, heads []Head) []Head {
	e.handleVector(now, name, heads)
	if p := e.named(name); p != nil && e.light && !p.light && !now.Before(e.streamAt) {
		e.exchangeVectors(now, p) // it knows more, or less: only it can compare the sums of the two
	}
	var reply []Head
	e.each(e.named(name), func(h Head) {
		for len(heads) > 0 && heads[0].Origin < h.Origin {
			heads = heads[1:]
		}
		if len(heads) > 0 && heads[0].Origin == h.Origin {
			c := h.Version.Compare(heads[0].Version)
			if c < 0 || c == 0 && h.State == heads[0].State {
				return
			}
		}
		reply = append(reply, h)
	})
	return reply
}

// handleVector handles the heads that the peer called name has listed.
func (e *Engine) handleVector(now time.Time, name string, heads []Head) {
	via := e.named(name)
	if via == nil || !via.live {
		return
	}
	for _, h := range heads {
		if h.Origin == e.id {
			e.handleOwnHead(now, h)
			if h.Version.Compare(e.self.Version) == 0 && h.State == e.self.State {
				via.reacted = h.Version
			}
			continue
		}
		if p := e.peers[h.Origin]; p != nil && p.live {
			e.handleClaim(now, p, h, via)
		}
	}
}
