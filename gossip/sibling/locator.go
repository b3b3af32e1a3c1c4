package sibling

import "github.com/summarycache/summarycache/gossip"

// A Candidate is a peer that may hold an object.
type Candidate = gossip.Candidate

// A Locator says which peers may hold an object, by their digests: a [gossip.Node] is
// one. Its methods are called from many goroutines at once while a request waits: they
// must neither block nor do I/O.
type Locator interface {
	// Candidates appends the peers that may hold the object of that identity to dst,
	// and returns the result. Peers of the same cost are asked in that order; the
	// Client leaves out those that fail. The identity is the string under which caches
	// advertise the object; hashed under the cluster's seed it is the digest key.
	Candidates(dst []Candidate, identity string) []Candidate

	// Distrust says that a peer was quarantined: its digest has far more false hits
	// than it promises, and should be fetched again.
	Distrust(peer string)
}

// An OutsideLocator is a [Locator] that also knows caches outside the cluster, which
// don't list objects under our identities: Squids. [Client.Plan] looks whether a
// Config.Locator is one.
type OutsideLocator interface {
	// CandidatesFor appends the further caches that may answer q to dst, and returns
	// the result. They are ranked with those that Candidates names for the likeliest
	// identity. It is called under the same conditions.
	CandidatesFor(dst []Candidate, q *LookupRequest) []Candidate
}
