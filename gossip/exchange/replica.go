package exchange

import (
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A replicaState tells how far the replica of a peer's digest can be trusted, whether the peer is
// live or not. PROTOCOL.md, 6.6, draws the states and the transitions.
type replicaState uint8

const (
	nothing replicaState = iota // there is no replica
	// from a former life of the origin or of this process: not used until the origin confirms it
	former
	trusted // verified: used, listed and served while the origin lives
	doubted // likewise, but the origin once answered as if it had not published this version
	wrong   // contradicted by the origin: not used or served, to be replaced by a snapshot
)

// replica is the replica of a peer's digest.
type replica struct {
	state   replicaState
	held    Head // zero, and filter and history nil, if there is none
	filter  *digest.Filter
	history *digest.History

	installedAt time.Time // when the version held was installed
	confirmed   Version   // the last version that the origin itself confirmed or served
	diverged    Version   // the last version that was logged as diverged
	floor       Version   // if wrong: the least version that can be the origin's present one
}

// holds reports whether there is a replica that may be used and served.
func (r *replica) holds() bool { return r.state == trusted || r.state == doubted }

// become changes the state of p's replica. Call settle afterwards.
func (e *Engine) become(p *peer, to replicaState) {
	if e.became != nil {
		e.became(p.state, to)
	}
	p.state = to
	if to == nothing {
		p.held, p.filter, p.history = Head{}, nil, nil
	}
}

// settle updates p's share of the sum and the filter that lookups use, after p's replica or life
// has changed. d, if not nil, leads from the version held before to the one held now.
func (e *Engine) settle(p *peer, d *digest.Delta) {
	var share uint64
	var seen *digest.Filter
	if p.live {
		h := Head{Origin: p.id, Version: Version{Incarnation: p.incarnation}}
		if p.holds() {
			h, seen = p.held, p.filter
		}
		share = h.sum()
	}
	e.known += share - p.share
	p.share = share
	if seen != p.seen {
		p.seen = seen
		e.outputs.Updates = append(e.outputs.Updates, Update{p.name, seen, d})
	}
}
