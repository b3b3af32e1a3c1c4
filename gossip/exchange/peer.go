package exchange

import (
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A peer is what the engine knows of one other member.
type peer struct {
	name string
	id   ID
	live bool
	died time.Time // when it ceased to be live

	// incarnation is the present one by membership. Heads of others are not believed.
	incarnation uint64

	share uint64         // of the engine's sum
	seen  *digest.Filter // by lookups; nil if nothing is

	replica
	pursuit
	audience

	// As a source for others' digests.
	busyUntil time.Time
}

// pursuit is what was announced of a peer's digest, and what is done to fetch it.
type pursuit struct {
	announced   Head      // the greatest; zero Version if none
	heardAt     time.Time // when it was announced
	byAdvert    bool      // whether by advert
	check       bool      // ask the origin although nothing newer was announced
	contestedAt time.Time // when the origin was last asked because of a contradiction

	step      *Step     // to announced, not decoded yet; nil if there is none
	stepAt    time.Time // when it came
	stepsFrom time.Time // until when steps are ignored

	partial   *Partial  // the first bytes of a snapshot; nil if there are none
	partialAt time.Time // when the last of them came

	queued    bool      // in Engine.want or Engine.waiting
	flight    *flight   // the fetch under way; nil if there is none
	notBefore time.Time // earliest start of the next fetch
	attempts  int       // failed in a row
	badDeltas int       // rejected in a row
	refusals  int       // answers in a row that cannot be used here: too large, unknown format
	refused   uint64    // epoch in which that happened too often; 0 if none
	holders   []*peer   // other peers that listed announced.Version
	snapshots allowance
}

// audience is a peer as a receiver of this engine's adverts.
type audience struct {
	told     Version   // the last one advertised to it
	stepped  bool      // it was sent as a step, and not repeated yet
	differed bool      // its last sum was another than this peer's
	nothing  int       // its vectors in a row without news, since its sum was the same
	reacted  Version   // the last one that it is known to have
	repeats  int       // of told
	repeatAt time.Time // zero if no repeat is due
	pending  bool      // in the round of adverts to send
}

const maxHolders = 4

// behind reports whether there is something to fetch of p.
func (p *peer) behind() bool {
	return p.live && (p.state == wrong || p.check || p.announced.Version.Compare(p.held.Version) > 0)
}

// begin forgets what was heard of a life that has ended.
func (p *peer) begin(incarnation uint64) {
	p.incarnation = incarnation
	p.diverged, p.confirmed = Version{}, Version{}
	snapshots, queued := p.snapshots, p.queued // these outlive it: what it may cost, and whether it is in a list
	p.pursuit = pursuit{snapshots: snapshots, queued: queued, stepsFrom: p.stepsFrom}
}

// dropHolder notes that another peer cannot serve the announced version.
func (p *peer) dropHolder(via *peer) {
	p.holders = slices.DeleteFunc(p.holders, func(h *peer) bool { return h == via })
}
