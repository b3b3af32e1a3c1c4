package node

import (
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A locator finds siblings by the digests that gossip keeps, and by those of Squids.
type locator struct {
	sibling.Locator // by digests; set before the first request
	// The Squids beside the cluster; nil = none.
	squids *squid.Neighbours
}

// CandidatesFor adds the Squids, whose digests are not among those of the cluster.
func (l *locator) CandidatesFor(dst []sibling.Candidate, q *sibling.LookupRequest) []sibling.Candidate {
	if l.squids == nil {
		return dst
	}
	return l.squids.CandidatesFor(dst, q)
}
