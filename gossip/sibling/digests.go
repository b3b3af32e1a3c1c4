package sibling

import "github.com/summarycache/summarycache/gossip"

// A Node knows who probably holds an object: a [gossip.Node] is one.
type Node interface {
	Candidates(dst []gossip.Candidate, identity string) []gossip.Candidate
	Distrust(peer string)
}

// Digests is the [Locator] by the digests that gossip keeps. An object's key in
// them is its identity hashed under the cluster's seed, which [gossip.Holdings] does
// too. It is safe for concurrent use.
func Digests(n Node) Locator { return digests{n} }

type digests struct{ node Node }

func (d digests) Candidates(dst []Candidate, identity string) []Candidate {
	var room [8]gossip.Candidate
	for _, c := range d.node.Candidates(room[:0], identity) {
		dst = append(dst, Candidate{Peer: c.Peer, Addr: c.Service, FalsePositiveRate: c.FalsePositiveRate, Age: c.Age, Incarnation: c.Incarnation})
	}
	return dst
}

func (d digests) Report(r Report) {
	if r.Distrust {
		d.node.Distrust(r.Peer)
	}
}
