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
	seed := n.noted(keys)
	return n.judge(dst, len(dst), n.index.AllOf(buf[:0], keys), seed, spreadBy(keys))
}

// CandidatesOfAny is [Node.CandidatesByKey] for the peers that probably hold at least
// one of keys.
func (n *Node) CandidatesOfAny(dst []Candidate, keys []digest.Key) []Candidate {
	var buf [maxMatches]index.Match
	seed := n.noted(keys)
	return n.judge(dst, len(dst), n.index.AnyOf(buf[:0], keys), seed, spreadBy(keys))
}

// CandidatesByPrefix appends to dst the live peers that probably hold the beginning of a
// chain of keys, in which whoever has a key has all those before it: such as inference
// engines make for the blocks of a prompt. Those with the longest beginning come first,
// among equals the best. Keys, peers that are left out, and what it does not wait for are
// as in [Node.CandidatesByKey]; how exact the lengths are, [index.Index.Prefixes] says.
func (n *Node) CandidatesByPrefix(dst []PrefixCandidate, chain []digest.Key) []PrefixCandidate {
	var buf [maxMatches]index.Prefix
	seed := n.noted(chain)
	found := n.index.Prefixes(buf[:0], chain)
	if len(found) == 0 {
		return dst
	}
	table := *n.members.Load()
	now := time.Now()
	start := len(dst)
	for _, p := range found {
		if c, ok := n.candidate(table, p.Match, now, seed, spreadBy(chain)); ok {
			dst = append(dst, PrefixCandidate{c, p.Keys})
		}
	}
	slices.SortFunc(dst[start:], func(a, b PrefixCandidate) int {
		return cmp.Or(cmp.Compare(b.Keys, a.Keys), cmp.Compare(b.rank, a.rank))
	})
	return dst
}

// noted notes a question as one for the last of its keys, which of a chain is the one that
// is new, and returns the seed that they are to be under.
func (n *Node) noted(keys []digest.Key) uint64 {
	if len(keys) > 0 {
		n.demand.note(keys[len(keys)-1])
	}
	return n.Seed()
}

// spreadBy returns the key by which the load of a question is spread: the first, so that
// prompts that begin alike meet the same peers.
func spreadBy(keys []digest.Key) digest.Key {
	if len(keys) == 0 {
		return 0
	}
	return keys[0]
}
