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
	// Fresh names peers that have just confirmed that the replica is their present digest.
	Fresh []string
	// NotDead names peers that advertise although membership counts them as dead: that
	// may be a mistake.
	NotDead []string
	// Incarnation is the new one if this peer had to take another, for membership to
	// announce; otherwise 0.
	Incarnation uint64
}

// Datagram is a message to send once; it may be lost. Call [Engine.Sent] when it was sent.
type Datagram struct {
	To     string
	Data   []byte
	change int // how much of Data is a change, with its signature
}

// Fetch is a get to send to Source. Pass the answer to [DecodeAnswer] and
// the result to [Engine.FetchDone].
type Fetch struct {
	Number uint64 // different for every fetch of an engine
	Origin string
	Source string
	Get    Get
	Base   *digest.Filter    // what Get says is held; nil if nothing
	Key    ed25519.PublicKey // by which the origin signs; empty if it does not
	// Partial is the part of a snapshot that Get says is there; nil if none.
	Partial *Partial
	// Step is not nil if the answer came in a datagram. Then there is nothing to send:
	// pass the Fetch to [DecodeChange].
	Step *Step
}

// Sync is a vector to exchange with Peer; the answer goes to [Engine.SyncDone].
type Sync struct {
	Peer  string
	Heads []Head
}

// Update changes what lookups see of a peer; if Filter is nil, nothing. Delta, if not nil,
// leads to Filter from what was held before. Lookups may have seen something else, or
// nothing, since.
type Update struct {
	Peer   string
	Filter *digest.Filter
	Delta  *digest.Delta
}

// EventKind says what an [Event] is about.
type EventKind uint8

const (
	Applied   EventKind = iota + 1 // a newer version of Peer's digest is in use
	Diverged                       // the replica of Peer differs from Peer's digest at Head; repair has begun
	Repaired                       // a replica that had diverged equals its origin's digest again
	Rejected                       // an answer of Source about Peer was not accepted; Err says why
	Flooding                       // Peer replaces its whole digest too often; it is asked less often now
	Displaced                      // a former life of this peer had a greater incarnation; a new one was taken
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
	AdvertBytesOut int64 // without the changes in steps
	Repeats        int64 // adverts and reminders to peers that had not reacted
	CarriersOut    int64 // of AdvertsOut, the steps
	AdvertsIn      int64
	AdvertBytesIn  int64 // likewise; AdvertsBad included
	AdvertsBad     int64 // malformed datagrams
	CarriedBytesIn int64 // changes in steps

	Fetches      int64 // gets sent
	DeltasIn     int64 // fetched, and received in steps
	CarriedIn    int64 // of DeltasIn, those received in steps
	SnapshotsIn  int64
	Resumed      int64 // of SnapshotsIn, those of which a part had come before a stream broke
	ResumedBytes int64 // the bytes of these parts
	Adopted      int64 // digests of a former life that went on in the next
	Rejected     int64 // answers not accepted

	DeltasOut       int64 // served, and sent in steps (CarriersOut)
	CarriedBytesOut int64 // changes in steps
	SnapshotsOut    int64
	Refused         int64 // gets answered busy

	Agreed      int64 // sums received that equalled this peer's
	Syncs       int64 // exchanges of vectors begun by this peer
	Gaps        int64 // versions installed after at least one before had been missed
	Repairs     int64 // versions learnt of by sync, not by advert
	Contested   int64 // claims that a version held has another state
	Divergences int64 // replicas that the origin contradicted
	Floods      int64

	LagSum time.Duration // of all applied versions that were heard of before
	LagMax time.Duration
	Lags   int64 // their number
}
