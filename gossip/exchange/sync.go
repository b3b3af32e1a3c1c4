package exchange

import "time"

const (
	eagerSyncs    = 3 // after joining
	eagerInterval = 200 * time.Millisecond
	syncRetry     = 500 * time.Millisecond // after a sync that failed, doubled by chance
)

// startSync exchanges vectors with a random peer when it is time to.
func (e *Engine) startSync(now time.Time) {
	if e.syncAt.IsZero() || now.Before(e.syncAt) || len(e.live) == 0 {
		return
	}
	mean := e.cfg.syncInterval(len(e.live))
	if e.eager > 0 {
		e.eager--
		mean = min(mean, eagerInterval)
	}
	e.syncAt = now.Add(e.spread(mean))
	p := e.live[e.rng.IntN(len(e.live))]
	e.stats.Syncs++
	e.outputs.Syncs = append(e.outputs.Syncs, Sync{Peer: p.name, Heads: e.vector()})
}

// vector lists what is held verified, this peer included, by ID.
func (e *Engine) vector() []Head {
	heads := make([]Head, 0, len(e.order)+1)
	e.each(func(h Head) { heads = append(heads, h) })
	return heads
}

// each calls f for every head that may be told, by ID.
func (e *Engine) each(f func(Head)) {
	own := e.published()
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

// SyncDone takes in the vector that a peer answered a sync with, or that it did
// not. heads must be in order of Origin, as [DecodeVector] ensures.
func (e *Engine) SyncDone(now time.Time, name string, heads []Head, err error) {
	if err != nil {
		if !e.syncAt.IsZero() {
			e.syncAt = earlier(e.syncAt, now.Add(e.spread(syncRetry)))
		}
		return
	}
	e.hearVector(now, name, heads)
}

// HandleSync takes in a sync from name and returns the vector to answer with.
func (e *Engine) HandleSync(now time.Time, name string, heads []Head) []Head {
	e.hearVector(now, name, heads)
	var reply []Head
	e.each(func(h Head) {
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

// hearVector takes in what the peer called name says it holds.
func (e *Engine) hearVector(now time.Time, name string, heads []Head) {
	via := e.peers[IDOf(name)]
	if via == nil || via.name != name || !via.live {
		return
	}
	for _, h := range heads {
		if h.Origin == e.id {
			e.hearOfSelf(now, h)
			if h.Version.Compare(e.self.Version) == 0 && h.State == e.self.State {
				via.reacted = h.Version
			}
			continue
		}
		if p := e.peers[h.Origin]; p != nil && p.live {
			e.hear(now, p, h, via)
		}
	}
}
