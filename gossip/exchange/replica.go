package exchange

import (
	"crypto/ed25519"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A replicaState says how far the replica of a peer's digest can be trusted. PROTOCOL.md,
// 6.6, draws the states and the transitions. It does not depend on whether the peer is live.
type replicaState uint8

const (
	nothing replicaState = iota // nothing is held
	former                      // from a former life of the origin or of this process: not used until the origin confirms it
	trusted                     // verified: used, listed and served while the origin lives
	doubted                     // likewise, but the origin once answered as if it had not published this version
	wrong                       // contradicted by the origin: not used or served, to be replaced by a snapshot
)

// replica is what is held of a peer.
type replica struct {
	state     replicaState
	held      Head // zero, and the following fields nil, if nothing
	filter    *digest.Filter
	history   *digest.History
	key       ed25519.PublicKey // by which the peer signs in this life; empty if it does not
	signature []byte            // of held

	installedAt time.Time // when what is held came
	confirmed   Version   // the last one that the origin itself confirmed or served
	diverged    Version   // the last one that was logged as diverged
	floor       Version   // if wrong: the least version that can be the origin's present one
}

// holds reports whether there is a replica that may be used and served.
func (r *replica) holds() bool { return r.state == trusted || r.state == doubted }

// become changes the state of p's replica; settle does the rest.
func (e *Engine) become(p *peer, to replicaState) {
	if e.became != nil {
		e.became(p.state, to)
	}
	p.state = to
	if to == nothing {
		p.held, p.filter, p.history, p.signature = Head{}, nil, nil, nil
	}
}

// settle brings what follows from the state of p's replica up to date: p's share of the
// sum, and what lookups see of it. d, if not nil, leads from what was held before to what
// is held now.
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
