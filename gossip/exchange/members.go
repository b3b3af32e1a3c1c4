package exchange

import (
	"cmp"
	"slices"
	"time"
)

// PeerUp informs the engine that membership counts a peer as alive in this incarnation. A repeated call
// has no effect.
func (e *Engine) PeerUp(now time.Time, name string, incarnation uint64) {
	p := e.find(name, now)
	if p == nil {
		return
	}
	if p.live && p.incarnation == incarnation {
		return
	}
	if incarnation < p.incarnation {
		// Its clock was put back. Other peers may know the greater incarnation, so it must take an
		// even greater one.
		e.send(p, Advert{echo, Head{Origin: p.id, Version: Version{Incarnation: p.incarnation}}})
	}
	if incarnation != p.incarnation {
		switch {
		case p.state == nothing:
		case p.state != wrong && incarnation > p.incarnation:
			e.become(p, former) // perhaps it continues the digest of its former life
		default:
			e.become(p, nothing)
		}
		p.begin(incarnation)
	}
	p.reacted, p.advertised = Version{}, Version{} // it may have lost its replica of this peer's digest
	if !p.live {
		p.live = true
		e.live = append(e.live, p)
		if len(e.live) == 1 {
			e.eager = eagerSyncs
			if !e.light && !e.complete {
				e.lookAt = now.Add(settleWait)
			}
			e.syncAt = now.Add(e.spread(eagerInterval))
		}
	}
	e.settle(p, nil)
	p.check = true
	p.retry.Until = now
	e.enqueue(p)
	e.advertise(now, p)
}

// Alone reports whether no other peer is alive.
func (e *Engine) Alone() bool { return len(e.live) == 0 }

// PeerDown informs the engine that a peer is dead or has left.
func (e *Engine) PeerDown(now time.Time, name string) {
	p := e.named(name)
	if p == nil || !p.live {
		return
	}
	p.live = false
	p.died = now
	p.repeatAt = time.Time{}
	e.settle(p, nil)
	e.live = slices.DeleteFunc(e.live, func(q *peer) bool { return q == p })
	if len(e.live) == 0 {
		e.syncAt = time.Time{}
	}
	if e.expireAt.IsZero() {
		e.expireAt = now.Add(keepDead)
	}
}

// named returns the peer called name; nil if it is unknown.
func (e *Engine) named(name string) *peer {
	if p := e.peers[IDOf(name)]; p != nil && p.name == name {
		return p
	}
	return nil
}

// find returns the peer called name, and adds it if it is unknown. It returns nil for this peer
// itself, for a name whose ID another peer has, and if there are too many peers.
func (e *Engine) find(name string, now time.Time) *peer {
	id := IDOf(name)
	if p := e.peers[id]; p != nil {
		if p.name != name {
			e.emit(Event{Kind: Collision, Peer: name})
			return nil
		}
		return p
	}
	if id == e.id {
		if name != e.cfg.Name {
			e.emit(Event{Kind: Collision, Peer: name})
		}
		return nil
	}
	if len(e.order) >= MaxHeads-1 {
		return nil
	}
	p := &peer{name: name, id: id, pursuit: pursuit{snapshots: allowance{since: now}}}
	e.peers[id] = p
	e.tag(p)
	i, _ := slices.BinarySearchFunc(e.order, id, func(p *peer, id ID) int { return cmp.Compare(p.id, id) })
	e.order = slices.Insert(e.order, i, p)
	return p
}

// keepDead is how long the replica of a dead peer is kept.
const keepDead = 10 * time.Minute

// expire forgets peers that have been dead for long.
func (e *Engine) expire(now time.Time) {
	if e.expireAt.IsZero() || now.Before(e.expireAt) {
		return
	}
	e.expireAt = time.Time{}
	e.order = slices.DeleteFunc(e.order, func(p *peer) bool {
		if p.live {
			return false
		}
		gone := p.died.Add(keepDead)
		if now.Before(gone) {
			e.expireAt = earlier(e.expireAt, gone)
			return false
		}
		if p.state != nothing {
			e.become(p, nothing)
		}
		delete(e.peers, p.id)
		return true
	})
	e.tagPeers()
}
