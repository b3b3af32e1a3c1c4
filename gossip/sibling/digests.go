package sibling

import (
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
)

// A Node knows who probably holds a key, and learns how they did: a
// [gossip.Node] is one.
type Node interface {
	Candidates(dst []gossip.Candidate, k digest.Key) []gossip.Candidate
	ReportHit(peer string)
	ReportFalseHit(peer string)
	ReportFailure(peer string)
}

// Digests is the [Locator] by the digests that gossip keeps: an object's key is
// its identity hashed under the seed, which is that of the filters' geometry. It is
// safe for concurrent use.
func Digests(n Node, seed uint64) Locator { return &digests{n, seed} }

type digests struct {
	node Node
	seed uint64
}

func (d *digests) Candidates(dst []Candidate, identity string) []Candidate {
	var room [8]gossip.Candidate
	for _, c := range d.node.Candidates(room[:0], digest.KeyOfString(d.seed, identity)) {
		dst = append(dst, Candidate{Peer: c.Peer, Addr: c.Service, FalsePositiveRate: c.FalsePositiveRate, Age: c.Age})
	}
	return dst
}

func (d *digests) Report(r Report) {
	switch r.Outcome {
	case Hit:
		d.node.ReportHit(r.Peer)
	case FalseHit:
		d.node.ReportFalseHit(r.Peer)
	case Refused, TimedOut, Failed:
		d.node.ReportFailure(r.Peer)
	}
}
