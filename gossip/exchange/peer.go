package exchange

import (
	"crypto/ed25519"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A peer is what the engine knows of one other member.
type peer struct {
	name string
	id   ID
	live bool
	died time.Time // when it ceased to be live

	// incarnation is the life that membership says it is in. Heads of other
	// lives are not believed.
	incarnation uint64

	// The replica. held.Version is zero if there is none; filter and history are
	// then nil.
	held    Head
	filter  *digest.Filter
	history *digest.History

	key       ed25519.PublicKey // by which it signs in this life; empty if it does not
	signature []byte            // of held

	carried   *Carrier  // of announced, not unpacked yet; nil if there is none
	carriedAt time.Time // when it came
	carryFrom time.Time // until when carriers are ignored

	announced   Head      // the greatest heard of; zero Version if none
	heardAt     time.Time // when it was heard of
	byAdvert    bool      // whether by advert
	check       bool      // ask the origin although nothing newer was heard of
	distrusted  bool      // diverged: ask the origin for a snapshot
	floor       Version   // of snapshots that can be the answer to that
	restored    bool      // the replica is from a former life of this process, and not confirmed yet
	diverged    Version   // the last version that was logged as diverged
	contestedAt time.Time // when the origin was last asked because of a contradiction

	installedAt time.Time // when what is held came
	doubted     bool      // the origin answered once as if it had not published that

	confirmed Version // the last one that the origin itself was asked for or served

	partial   *Partial  // the first bytes of a snapshot; nil if there are none
	partialAt time.Time // when the last of them came

	// Fetching.
	fetching  uint64    // number of the fetch under way; 0 if none
	queued    bool      // in the engine's list of wants
	notBefore time.Time // earliest start of the next fetch
	attempts  int       // that failed in a row
	badDeltas int       // rejected in a row
	refusals  int       // answers in a row that cannot be used here: too large, unknown format
	refused   uint64    // epoch in which that happened too often; 0 if none
	holders   []holder  // who else listed announced.Version
	snapshots allowance // for snapshots

	// As a source for others' digests.
	busyUntil time.Time

	// As a receiver of this engine's adverts.
	told     Version   // the last one sent
	carrying bool      // whether it was sent by a carrier, and not repeated yet
	reacted  Version   // the last one it is known to have
	repeats  int       // of told
	repeatAt time.Time // zero if no repeat is due
	pending  bool      // in the round of adverts to send
}

type holder struct {
	peer    *peer
	version Version
}

const maxHolders = 4

// behind reports whether there is something to fetch of p.
func (p *peer) behind() bool {
	return p.live && (p.distrusted || p.check || p.announced.Version.Compare(p.held.Version) > 0)
}

// holds reports whether there is a replica that may be used and passed on.
func (p *peer) holds() bool { return p.filter != nil && !p.distrusted && !p.restored }

// forget drops everything heard and held, but for the filter (see setFilter), for a
// new life.
func (p *peer) forget() {
	p.held, p.history = Head{}, nil
	p.restored = false
	p.announced, p.carried = Head{}, nil
	p.heardAt, p.byAdvert = time.Time{}, false
	p.check, p.distrusted, p.refused, p.refusals = false, false, 0, 0
	p.doubted = false
	p.diverged, p.contestedAt, p.confirmed = Version{}, time.Time{}, Version{}
	p.holders, p.partial = nil, nil
	p.attempts, p.badDeltas, p.notBefore = 0, 0, time.Time{}
	p.fetching = 0
}

// addHolder notes that via has version v of p.
func (p *peer) addHolder(via *peer, v Version, random int) {
	if via == p {
		return
	}
	for i := range p.holders {
		if p.holders[i].peer == via {
			p.holders[i].version = v
			return
		}
	}
	if len(p.holders) < maxHolders {
		p.holders = append(p.holders, holder{via, v})
		return
	}
	p.holders[random%maxHolders] = holder{via, v}
}

func (p *peer) dropHolder(via *peer) {
	for i := range p.holders {
		if p.holders[i].peer == via {
			p.holders = append(p.holders[:i], p.holders[i+1:]...)
			return
		}
	}
}
