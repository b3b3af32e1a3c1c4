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

// CandidatesOfAll is [Node.CandidatesByKey] for the peers that probably hold all of keys. Without
// keys it returns all peers.
func (n *Node) CandidatesOfAll(dst []Candidate, keys []digest.Key) []Candidate {
	n.made()
	var buf [maxMatches]index.Match
	return n.rank(dst, len(dst), n.index.AllOf(buf[:0], keys), n.noted(keys))
}

// CandidatesOfAny is [Node.CandidatesByKey] for the peers that probably hold at least one of keys.
func (n *Node) CandidatesOfAny(dst []Candidate, keys []digest.Key) []Candidate {
	n.made()
	var buf [maxMatches]index.Match
	return n.rank(dst, len(dst), n.index.AnyOf(buf[:0], keys), n.noted(keys))
}

// CandidatesByPrefix appends to dst the live peers that probably hold the beginning of a chain of keys,
// such as those of the blocks of a prompt: a peer with a key of a chain has all keys before it. Peers
// with the longest beginning come first; equal ones are in the order of [Node.CandidatesByKey], which
// also describes the keys, the peers left out, and the costs. [index.Index.Prefixes] describes how
// exact the lengths are.
func (n *Node) CandidatesByPrefix(dst []PrefixCandidate, chain []digest.Key) []PrefixCandidate {
	n.made()
	var buf [maxMatches]index.Prefix
	first := n.noted(chain)
	table, now, start := *n.members.Load(), time.Now(), len(dst)
	for _, p := range n.index.Prefixes(buf[:0], chain) {
		if c, ok := n.candidate(table, p.Match, now, first); ok {
			dst = append(dst, PrefixCandidate{c, p.Keys})
		}
	}
	slices.SortFunc(dst[start:], func(a, b PrefixCandidate) int {
		return cmp.Or(cmp.Compare(b.Keys, a.Keys), cmp.Compare(b.rank, a.rank))
	})
	return dst
}

// noted counts a lookup of several keys as one of the last key, which in a chain is the new one. It
// returns the first key, by which candidates are ranked: prompts with the same beginning go to the
// same peers.
func (h *host) noted(keys []digest.Key) (first digest.Key) {
	if len(keys) > 0 {
		first = keys[0]
		h.demand.Note(keys[len(keys)-1])
	}
	return first
}
