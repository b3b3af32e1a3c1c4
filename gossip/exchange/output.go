package exchange

import (
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Outputs is the work that an [Engine] has for its caller. Each list is in order.
type Outputs struct {
	Datagrams []Datagram
	Fetches   []Fetch
	Syncs     []Sync
	Updates   []Update
	Events    []Event
	// Fresh names peers that have just confirmed that the replica is their present digest.
	Fresh []string
	// NotDead names peers that advertise although membership counts them as dead, perhaps wrongly.
	NotDead []string
	// Incarnation is the new incarnation for membership to announce if this peer had to take one;
	// otherwise 0.
	Incarnation uint64
}

// Datagram is a message to send once; it may be lost. Call [Engine.Sent] when it was sent.
type Datagram struct {
	To     string
	Data   []byte
	change int // bytes of Data that are a change
}

// Fetch is a get to send to Source. Pass the answer to [DecodeAnswer] and the result to
// [Engine.FetchDone].
type Fetch struct {
	Number uint64 // different for every fetch of an engine
	Origin string
	Source string
	Get    Get
	Base   *digest.Filter // the filter of Get.Have; nil if none
	// Step is not nil if the answer came in a datagram. Then send nothing, and pass the Fetch to
	// [DecodeChange].
	Step *Step
}

// Sync is a vector to exchange with Peer. Pass the answer to [Engine.SyncDone].
type Sync struct {
	Peer  string
	Heads []Head
}

// Update replaces the filter that lookups use for a peer; nil means that they find nothing there.
// Delta, if not nil, leads to Filter from the version held before. Lookups need not have used that
// version.
type Update struct {
	Peer   string
	Filter *digest.Filter
	Delta  *digest.Delta
}

// EventKind is the kind of an [Event].
type EventKind uint8

const (
	Applied  EventKind = iota + 1 // a newer version of Peer's digest is in use
	Diverged                      // the replica of Peer differs from Peer's digest at Head; repair has begun
	Repaired                      // a replica that had diverged equals its origin's digest again
	Rejected                      // Source's answer to a get for Peer's digest was not accepted, because of Err
	Flooding                      // Peer replaces its whole digest too often; it is fetched less often now
	// a former life of this peer had a greater incarnation; this one took an even greater
	Displaced
	Collision // Peer's name has the ID of another peer; it is ignored
	Leaving   // Peer is about to leave
)

var eventKinds = [...]string{"none", "applied", "diverged", "repaired", "rejected", "flooding", "displaced",
	"collision", "leaving"}

func (k EventKind) String() string { return eventKinds[k] }

// Event is a change of state that operators and embedders may want to know of.
type Event struct {
	Kind     EventKind
	Peer     string
	Source   string // Applied, Rejected: the peer that served it
	Head     Head
	Snapshot bool          // Applied: a snapshot, not a delta
	Bytes    int           // Applied: length of the body
	Lag      time.Duration // Applied: since the version was announced
	Err      error         // Rejected
}

// Stats has the counters of an [Engine]. Those in JSON are part of a peer's status.
type Stats struct {
	Published           int64 `json:"published"`        // versions of this peer's digest
	AdvertsSent         int64 `json:"adverts_sent"`     // datagrams, with repeats and echoes
	AdvertsReceived     int64 `json:"adverts_received"` // datagrams that are not malformed
	AdvertBytesSent     int64 `json:"-"`                // without the changes in steps
	AdvertBytesReceived int64 `json:"-"`                // likewise, with malformed datagrams
	Repeats             int64 `json:"-"`                // adverts and reminders to peers that had not reacted
	CarriedSent         int64 `json:"-"`                // of AdvertsSent, the steps
	// of the deltas received, those that came in adverts' datagrams, as steps
	CarriedReceived      int64 `json:"carried_received"`
	CarriedBytesSent     int64 `json:"carried_bytes_sent"` // of the deltas' bytes sent, those in steps
	CarriedBytesReceived int64 `json:"-"`

	Fetches           int64 `json:"-"`               // gets sent
	DeltasSent        int64 `json:"deltas_sent"`     // served, and in steps
	DeltasReceived    int64 `json:"deltas_received"` // fetched, and in steps
	SnapshotsSent     int64 `json:"snapshots_sent"`  // digests sent whole
	SnapshotsReceived int64 `json:"snapshots_received"`
	Adopted           int64 `json:"-"`        // replicas whose origin continued the same digest in its next life
	Rejected          int64 `json:"rejected"` // answers not accepted

	Agreed      int64 `json:"-"`           // sums received that equalled this peer's
	Syncs       int64 `json:"syncs"`       // exchanges of vectors begun by this peer
	Gaps        int64 `json:"-"`           // versions installed whose predecessor was not
	Repairs     int64 `json:"repairs"`     // versions of others learned by a comparison, not by an advert
	Contested   int64 `json:"-"`           // claims that a version held has another state
	Divergences int64 `json:"divergences"` // replicas that the origin contradicted
	Floods      int64 `json:"-"`           // events of kind Flooding

	LagSum time.Duration `json:"-"` // of all applied versions that had been announced
	LagMax time.Duration `json:"-"`
	Lags   int64         `json:"-"` // their number
}
