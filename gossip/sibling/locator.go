package sibling

import (
	"context"

	"github.com/summarycache/summarycache/gossip"
)

// A Candidate is a peer that may hold an object.
type Candidate = gossip.Candidate

// A Locator finds the peers that may hold an object, by their digests. A [gossip.Node] is one.
// Its methods are called from many goroutines at once while a request waits: they must
// neither block nor do I/O.
type Locator interface {
	// Candidates appends the peers that may hold the object of an identity to dst, and
	// returns the result. Peers of equal cost are asked in that order; the Client leaves
	// out those that fail. The identity is the string under which caches advertise the
	// object; its hash under the cluster's seed is the digest key.
	Candidates(dst []Candidate, identity string) []Candidate

	// Distrust reports that a peer is quarantined for a minute or more, since too little of what
	// its digest claims is there. The digest should be fetched again.
	Distrust(peer string)
}

// An AskingLocator is a [Locator] that may have to ask another peer for the candidates. Config.Locator may be one, as a
// [gossip.Node] is.
type AskingLocator interface {
	// Ask returns the candidates for each of the identities, in the order of preference, or nil if Candidates
	// knows them. It waits for a fraction of a second at most, or until ctx ends.
	Ask(ctx context.Context, identities []string) [][]Candidate

	// Judge reports whether a candidate that Ask returned had the object.
	Judge(c Candidate, has bool)
}

// An outsideLocator is a [Locator] that also knows caches outside the cluster, such as Squids,
// which do not use the cluster's identities. Config.Locator may be one.
type outsideLocator interface {
	// CandidatesFor appends the further caches that may answer r to dst, and returns
	// the result. They are ranked with those that Candidates returns for the likeliest
	// identity. It is called under the same conditions.
	CandidatesFor(dst []Candidate, r *LookupRequest) []Candidate
}
