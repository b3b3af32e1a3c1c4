package sibling

import "time"

// A Candidate is a peer that may hold an object.
type Candidate struct {
	Peer              string        // the peer's name in the cluster; never empty
	Addr              string        // host:port where the peer answers siblings; never empty
	FalsePositiveRate float64       // odds in [0,1] that the peer's digest matches an object it does not hold
	Age               time.Duration // age of the peer's digest; 0 = unknown or new
	Incarnation       uint64        // the life the peer is in: a new one ends its suspension; 0 = unknown
	// Wait is for how long its answer may take beyond the deadline, because it is
	// fetching the object now; 0 = it has it, or has it not.
	Wait  time.Duration
	Squid bool // it is a Squid, which before release 6 says in X-Cache what others say in Cache-Status
}

// A Locator says which peers may hold an object, and is told the outcome of asking
// them. Its methods are called from many goroutines at once and on the
// way of a request: they must neither block nor do I/O.
type Locator interface {
	// Candidates appends the peers that may hold the object of that identity to dst,
	// and returns the result. Peers of the same cost are asked in that order; the
	// Client leaves out those that fail. The identity is the string under which caches
	// advertise the object; hashed under the cluster's seed it is the digest key.
	Candidates(dst []Candidate, identity string) []Candidate

	// Report tells the outcome of one question to a peer.
	Report(Report)
}

// A QuestionLocator is a [Locator] that also knows caches which don't list objects under
// our identities. [Client.Plan] looks whether a Config.Locator is one.
type QuestionLocator interface {
	// CandidatesFor appends the further caches that may answer q to dst, and returns
	// the result. They are ranked with those that Candidates names for the likeliest
	// identity. It is called under the same conditions.
	CandidatesFor(dst []Candidate, q *Question) []Candidate
}

// A Report is the fate of one question to a sibling.
type Report struct {
	Peer    string
	Outcome Outcome // how it ended
	// Distrust says that the peer was quarantined for this false hit: its digest promises
	// far more than it keeps, and should be fetched anew.
	Distrust bool
}

// Outcome is how a question to a sibling ended.
type Outcome uint8

const (
	Hit      Outcome = iota + 1 // it answered with the object, as it was wanted
	FalseHit                    // it answered that it holds no fresh copy (504)
	Refused                     // no connection: refused, unreachable, no route; stop asking it
	TimedOut                    // no first byte within the deadline
	Failed                      // anything else: a reset connection, an answer that is no answer
	Canceled                    // nobody wanted the answer any more; says nothing about the peer
	Outrun                      // it was overtaken by another that was asked later
	Unusable                    // it has the object, and not as it was wanted: stale by this clock, or by the client's max-age
)

var outcomes = [...]string{"none", "hit", "false-hit", "refused", "timed-out", "failed", "canceled", "outrun", "unusable"}

func (o Outcome) String() string { return outcomes[o] }
