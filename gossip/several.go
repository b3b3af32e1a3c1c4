package gossip

import (
	"cmp"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

// PrefixCandidate is a peer that probably holds the beginning of a chain of keys.
type PrefixCandidate struct {
	Candidate
	Keys int // how many of the chain, at least 1
}

// CandidatesOfAll is [Node.CandidatesByKey] for the peers that probably hold every one
// of keys; of no keys, all peers.
func (n *Node) CandidatesOfAll(dst []Candidate, keys []digest.Key) []Candidate {
	var buf [maxMatches]index.Match
	return n.rank(dst, len(dst), n.index.AllOf(buf[:0], keys), n.noted(keys))
}

// CandidatesOfAny is [Node.CandidatesByKey] for the peers that probably hold at least
// one of keys.
func (n *Node) CandidatesOfAny(dst []Candidate, keys []digest.Key) []Candidate {
	var buf [maxMatches]index.Match
	return n.rank(dst, len(dst), n.index.AnyOf(buf[:0], keys), n.noted(keys))
}

// CandidatesByPrefix appends to dst the live peers that probably hold the beginning of a
// chain of keys, in which whoever has a key has all keys before it, such as the keys of the blocks of
// a prompt. Those with the longest beginning come first, among equals the best. Keys, peers that are
// left out, and costs are as in [Node.CandidatesByKey]; [index.Index.Prefixes] says how exact the
// lengths are.
func (n *Node) CandidatesByPrefix(dst []PrefixCandidate, chain []digest.Key) []PrefixCandidate {
	var buf [maxMatches]index.Prefix
	first := n.noted(chain)
	table, now, start := *n.members.Load(), time.Now(), len(dst)
	for _, p := range n.index.Prefixes(buf[:0], chain) {
		if c, ok := candidate(table, p.Match, now, first); ok {
			dst = append(dst, PrefixCandidate{c, p.Keys})
		}
	}
	slices.SortFunc(dst[start:], func(a, b PrefixCandidate) int {
		return cmp.Or(cmp.Compare(b.Keys, a.Keys), cmp.Compare(b.rank, a.rank))
	})
	return dst
}

// noted counts a lookup of several keys as one of the last, which in a chain is the one that
// is new. It returns the first, by which the load is spread, so that
// prompts that begin alike meet the same peers.
func (n *Node) noted(keys []digest.Key) (first digest.Key) {
	if len(keys) > 0 {
		first = keys[0]
		n.demand.note(keys[len(keys)-1])
	}
	return first
}
