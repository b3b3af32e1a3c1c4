package exchange

import (
	"crypto/ed25519"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Outputs is what an [Engine] wants done, in the order in which it decided.
type Outputs struct {
	Datagrams []Datagram
	Fetches   []Fetch
	Syncs     []Sync
	Updates   []Update
	Events    []Event
	// Fresh names peers whose digest was just learnt, from the peer itself, to be
	// what is held.
	Fresh []string
	// NotDead names peers that advertise though membership says that this life of them
	// is over: they may have been taken for dead by mistake.
	NotDead []string
	// Incarnation is the new one if this peer had to take another, to be told to
	// membership; otherwise 0.
	Incarnation uint64
}

// Datagram is a message to send once, without knowing whether it arrives. Tell
// [Engine.Sent] when it was sent.
type Datagram struct {
	To     string
	Data   []byte
	change int // how much of Data is a change, with its signature
}

// Fetch is a get to send to Source. Give what comes of it to [DecodeAnswer] and
// the result to [Engine.FetchDone].
type Fetch struct {
	Number uint64 // different for every fetch of an engine
	Origin string
	Source string
	Get    Get
	Base   *digest.Filter    // what Get says is held; nil if nothing
	Key    ed25519.PublicKey // by which the origin signs; empty if it does not
	// Partial is what Get says is there of a snapshot; nil if nothing.
	Partial *Partial
	// Step is not nil if the answer came in a datagram. Then there is nothing to send:
	// give the Fetch to [DecodeChange].
	Step *Step
}

// Sync is a vector to exchange with Peer; the answer goes to [Engine.SyncDone].
type Sync struct {
	Peer  string
	Heads []Head
}

// Update changes what lookups see of a peer. A nil Filter means nothing. Delta is
// what made Filter of what was held before, if that is how it came; lookups may have
// seen something else, or nothing, since.
type Update struct {
	Peer   string
	Filter *digest.Filter
	Delta  *digest.Delta
}

// EventKind says what an [Event] is about.
type EventKind uint8

const (
	Applied   EventKind = iota + 1 // a newer version of Peer's digest is in use
	Diverged                       // Peer's digest at Head differs from what is held of it; repair has begun
	Repaired                       // what had diverged equals its origin's again
	Rejected                       // an answer of Source about Peer was not accepted; Err says why
	Flooding                       // Peer changes its digest wholly too often; it is asked less often now
	Displaced                      // another life of this very peer has a greater incarnation; a new one was taken
	Collision                      // Peer's name has the ID of another peer; it is ignored
	Leaving                        // Peer says that it is about to leave
)

var eventKinds = [...]string{"none", "applied", "diverged", "repaired", "rejected", "flooding", "displaced", "collision", "leaving"}

func (k EventKind) String() string { return eventKinds[k] }

// Event is something that operators and embedders may want to know.
type Event struct {
	Kind     EventKind
	Peer     string
	Source   string // who served it: Applied, Rejected
	Head     Head
	Snapshot bool          // Applied: by a snapshot, not by a delta
	Bytes    int           // Applied: length of the body
	Lag      time.Duration // Applied: since the version was first heard of
	Err      error
}

// Stats counts what an [Engine] did since it was made.
type Stats struct {
	Published      int64 // versions
	AdvertsOut     int64 // datagrams sent, repeats and echoes included
	AdvertBytesOut int64 // without the changes behind adverts
	Repeats        int64 // adverts made again for peers that had not reacted
	CarriersOut    int64 // of AdvertsOut, those with the change behind them
	AdvertsIn      int64
	AdvertBytesIn  int64 // likewise; AdvertsBad included
	AdvertsBad     int64 // datagrams that were no advert
	CarriedBytesIn int64 // behind adverts

	Fetches      int64 // gets sent
	DeltasIn     int64 // fetched, and carried by adverts
	CarriedIn    int64 // of DeltasIn, those that came with an advert
	SnapshotsIn  int64 // digests that came whole
	Resumed      int64 // of SnapshotsIn, those of which a part had come before a stream broke
	ResumedBytes int64 // that so were not fetched again
	Adopted      int64 // digests of a former life that went on in the next
	Rejected     int64 // answers not accepted

	DeltasOut       int64 // served, and sent with adverts (CarriersOut)
	CarriedBytesOut int64 // sent with adverts
	SnapshotsOut    int64
	Refused         int64 // gets answered busy

	Agreed      int64 // sums of others heard that equalled this peer's
	Syncs       int64 // exchanges of whole vectors begun by this peer
	Gaps        int64 // versions taken in after at least one before had been missed
	Repairs     int64 // versions learnt of by sync, not by advert
	Contested   int64 // contradictions heard of between what is held and what others say of that version
	Divergences int64 // those in which the origin contradicted what was held
	Floods      int64

	LagSum time.Duration // of all applied versions that were heard of before
	LagMax time.Duration
	Lags   int64 // their number
}
