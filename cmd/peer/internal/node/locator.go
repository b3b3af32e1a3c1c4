package node

import (
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A locator finds siblings by the digests that gossip keeps, and tells gossip
// how they did.
type locator struct {
	seed uint64       // of the digest keys
	node *gossip.Node // set before the first request
	// The Squids beside the cluster; nil = none.
	squids *squid.Neighbours
}

// key is what stands for an object in digests.
func (l *locator) key(identity string) digest.Key { return digest.KeyOfString(l.seed, identity) }

func (l *locator) Candidates(dst []sibling.Candidate, identity string) []sibling.Candidate {
	var room [8]gossip.Candidate
	for _, c := range l.node.Candidates(room[:0], l.key(identity)) {
		dst = append(dst, sibling.Candidate{Peer: c.Peer, Addr: c.Service, FalsePositiveRate: c.FalsePositiveRate, Age: c.Age})
	}
	return dst
}

// CandidatesFor adds the Squids: they know nothing of the cluster's digests, nor
// it of theirs.
func (l *locator) CandidatesFor(dst []sibling.Candidate, q *sibling.Question) []sibling.Candidate {
	if l.squids == nil {
		return dst
	}
	return l.squids.CandidatesFor(dst, q)
}

func (l *locator) Report(r sibling.Report) {
	if l.squids != nil && l.squids.Report(r) {
		return
	}
	switch r.Outcome {
	case sibling.Hit:
		l.node.ReportHit(r.Peer)
	case sibling.FalseHit:
		l.node.ReportFalseHit(r.Peer)
	case sibling.Refused, sibling.TimedOut, sibling.Failed:
		l.node.ReportFailure(r.Peer)
	}
}
