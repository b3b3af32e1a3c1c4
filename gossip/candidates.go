package gossip

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Candidate is a peer that probably holds an object.
type Candidate struct {
	Peer              string
	Service           string        // where to ask it, host:port
	Age               time.Duration // since its digest was last known to be current
	FalsePositiveRate float64       // odds that its digest says yes for an object it does not hold, 0 to 1
	Incarnation       uint64        // the life it is in

	rank uint64 // differs from object to object
}

// maxMatches is how many matches of a lookup are looked at without allocating.
const maxMatches = 32

// Candidates appends to dst the live peers that probably hold the object of an
// identity, and returns the result. The order differs from object to object, so that
// the load is spread. It says nothing of how the peers do: a client of package sibling,
// which asks them, knows that. Peers without a service address are left out. It does no
// I/O, never waits, and allocates only to grow dst.
//
// The identity is what the peers give to [Holdings.Add]. Its key is made under each
// seed that digests are under: one, and while the seed of a cluster changes two. No
// peer is missed because its digest changes from one to the other in the meantime.
func (n *Node) Candidates(dst []Candidate, identity string) []Candidate {
	seeds := n.digestSeeds()
	n.demand.note(digest.KeyOfString(seeds[0], identity))
	start := len(dst)
	// A peer that changes to a seed that was looked up already, before its old one is, is
	// found by the second round.
	for range min(len(seeds), 2) {
		for _, seed := range seeds {
			dst = n.lookup(dst, start, digest.KeyOfString(seed, identity))
		}
	}
	return dst
}

// CandidatesByKey is [Node.Candidates] for a key that the program made itself, by
// [digest.KeyOf] under [Node.Seed]. A digest under another seed says nothing of it: where
// the seed may change while the node runs, use Candidates.
func (n *Node) CandidatesByKey(dst []Candidate, k digest.Key) []Candidate {
	n.demand.note(k)
	return n.lookup(dst, len(dst), k)
}

// lookup appends to dst the peers that probably have a key, and sorts all from start on.
func (n *Node) lookup(dst []Candidate, start int, k digest.Key) []Candidate {
	var buf [maxMatches]index.Match
	return n.rank(dst, start, n.index.Lookup(buf[:0], k), k)
}

// rank appends to dst those of matches that can be asked and are not in dst[start:], ranks
// them for a key, and sorts all from start on.
func (n *Node) rank(dst []Candidate, start int, matches []index.Match, k digest.Key) []Candidate {
	if len(matches) == 0 {
		return dst
	}
	table, now, others := *n.members.Load(), time.Now(), dst[start:]
	for _, match := range matches {
		if c, ok := candidate(table, match, now, k); ok && !named(others, c.Peer) {
			dst = append(dst, c)
		}
	}
	slices.SortFunc(dst[start:], func(a, b Candidate) int { return cmp.Compare(b.rank, a.rank) })
	return dst
}

// candidate returns what is known of a match, ranked for a key, if it can be asked.
func candidate(table memberTable, match index.Match, now time.Time, k digest.Key) (Candidate, bool) {
	m := table[match.Peer]
	if m == nil || !m.up.Load() {
		return Candidate{}, false
	}
	info := m.info.Load()
	return Candidate{
		Peer:              m.name,
		Service:           info.meta.Service,
		Age:               max(0, now.Sub(time.Unix(0, m.fresh.Load()))),
		FalsePositiveRate: match.FalsePositiveRate,
		Incarnation:       info.meta.Incarnation,
		rank:              mix(uint64(k) ^ m.spread),
	}, info.meta.Service != ""
}

func named(cs []Candidate, peer string) bool {
	return slices.ContainsFunc(cs, func(c Candidate) bool { return c.Peer == peer })
}

// mix is a bijection in which every input bit moves every output bit.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// Distrust says that peer lacks what its digest says it has, far more often than the
// digest's error rate explains: the digest is fetched anew.
func (n *Node) Distrust(peer string) {
	n.log.LogAttrs(n.ctx, slog.LevelWarn, "quarantined a peer: far more false hits than its digest promises", slog.String("member", peer))
	n.tell(func(e *exchange.Engine) { e.Distrust(peer) })
}
