package exchange

import (
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/backoff"
)

// A peer is the engine's state for another member.
type peer struct {
	name  string
	id    ID
	live  bool
	light bool      // it keeps no digests
	died  time.Time // when it ceased to be live

	// incarnation is the present one according to membership. Heads of others are ignored.
	incarnation uint64

	share uint64         // its part of the engine's sum
	seen  *digest.Filter // the filter that lookups use; nil if none

	replica
	pursuit
	audience

	// As a source for others' digests.
	busyUntil time.Time
}

// pursuit is the state of fetching a peer's digest.
type pursuit struct {
	announced   Head      // the greatest announced; zero Version if none
	announcedAt time.Time // when it was announced
	byAdvert    bool      // whether by advert
	check       bool      // ask the origin although nothing newer was announced
	contestedAt time.Time // when the origin was last asked because of a contradiction

	step      *Step     // to announced, not decoded yet; nil if there is none
	stepAt    time.Time // when it arrived
	stepsFrom time.Time // steps are ignored until then

	queued    bool            // in Engine.want or Engine.waiting
	flight    *flight         // the fetch under way; nil if there is none
	retry     backoff.Backoff // of fetches that failed; none starts earlier, whatever the reason
	elsewhere bool            // the origin is busy: the next fetch is from another holder, if there is one
	whole     bool            // the next fetch is of a snapshot
	badDeltas int             // rejected in a row
	refusals  int             // answers in a row that cannot be used here: too large, unknown format
	refused   uint64          // epoch in which that happened too often; 0 if none
	holders   []*peer         // other peers that listed announced.Version
	snapshots allowance
}

// audience is the state of a peer as a receiver of this engine's adverts.
type audience struct {
	advertised Version   // the last version advertised to it
	stepped    bool      // by a step that has not been repeated yet
	differed   bool      // its last sum differed from this peer's
	noNews     int       // its vectors in a row without news, since its sum was last equal
	reacted    Version   // the last version that it is known to have
	repeats    int       // how often advertised was repeated
	repeatAt   time.Time // zero if no repeat is due
	pending    bool      // in the queue of adverts to send
}

const maxHolders = 4

// behind reports whether p's digest, or a confirmation of it, has to be fetched.
func (p *peer) behind() bool {
	return p.live && (p.state == wrong || p.check || p.announced.Version.Compare(p.held.Version) > 0)
}

// begin begins a new life of p: the state of the former one is dropped, except for the rate limits
// and the membership in a list.
func (p *peer) begin(incarnation uint64) {
	p.incarnation = incarnation
	p.diverged, p.confirmed = Version{}, Version{}
	snapshots, queued := p.snapshots, p.queued
	p.pursuit = pursuit{snapshots: snapshots, queued: queued, stepsFrom: p.stepsFrom}
}

// dropHolder notes that another peer cannot serve the announced version.
func (p *peer) dropHolder(via *peer) {
	p.holders = slices.DeleteFunc(p.holders, func(h *peer) bool { return h == via })
}
