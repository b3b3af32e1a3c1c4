package sibling

import (
	"context"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/insider"
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

// An asker is a [Locator] that may have to ask another peer for the candidates, as what a [gossip.Node] has inside. The
// Client decides which one is asked.
type asker interface {
	// Keepers returns the peers that can be asked; asks is false if Candidates knows.
	Keepers() (keepers []insider.Keeper, asks bool)

	// Ask asks a keeper, and returns the candidates for each of the identities, in the order of preference. It waits
	// until ctx ends.
	Ask(ctx context.Context, keeper string, identities []string) ([][]Candidate, error)

	// Judge reports what an answer of a keeper was worth, and whether it is now asked after all others.
	Judge(keeper string, w insider.Worth, mistrusted bool)
}

// asker returns the Locator if it is an asker.
func (c *Client) asker() (a asker, ok bool) {
	if n, of := c.cfg.Locator.(interface{ Inside() insider.Node }); of {
		a, ok = n.Inside().(asker)
		return a, ok
	}
	a, ok = c.cfg.Locator.(asker)
	return a, ok
}

// A doubter is a [Locator] that is told of each request that a sibling did not answer, so that membership finds out
// sooner whether it lives. A [gossip.Node] is one. Doubt must not block.
type doubter interface{ Doubt(peer string) }

// An outsideLocator is a [Locator] that also knows caches outside the cluster, such as Squids,
// which do not use the cluster's identities. Config.Locator may be one.
type outsideLocator interface {
	// CandidatesFor appends the further caches that may answer r to dst, and returns
	// the result. They are ranked with those that Candidates returns for the likeliest
	// identity. It is called under the same conditions.
	CandidatesFor(dst []Candidate, r *LookupRequest) []Candidate
}
