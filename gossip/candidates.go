package gossip

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
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
// peer is missed, and none named twice, because its digest goes over from one to the
// other meanwhile.
func (n *Node) Candidates(dst []Candidate, identity string) []Candidate {
	seeds := n.digestSeeds()
	n.demand.note(digest.KeyOfString(seeds[0], identity))
	start := len(dst)
	// A peer that goes over between two of the questions to a seed that was asked about
	// already is found when that is asked about again.
	for range min(len(seeds), 2) {
		for _, seed := range seeds {
			dst = n.ask(dst, start, seed, digest.KeyOfString(seed, identity))
		}
	}
	return dst
}

// CandidatesByKey is [Node.Candidates] for a key that the program made itself, by
// [digest.KeyOf] under [Node.Seed]. Only digests under that seed are asked: where it
// may change while the node runs, ask by Candidates.
func (n *Node) CandidatesByKey(dst []Candidate, k digest.Key) []Candidate {
	n.demand.note(k)
	return n.ask(dst, len(dst), n.Seed(), k)
}

// ask appends to dst[:start] and the candidates behind it those whose digest under a seed
// has a key, and sorts them.
func (n *Node) ask(dst []Candidate, start int, seed uint64, k digest.Key) []Candidate {
	var buf [maxMatches]index.Match
	return n.judge(dst, start, n.index.Lookup(buf[:0], k), seed, k)
}

// judge appends to dst[:start] and the candidates behind it those of matches under a seed
// that can be asked, ranks them for a key, and sorts them.
func (n *Node) judge(dst []Candidate, start int, matches []index.Match, seed uint64, k digest.Key) []Candidate {
	if len(matches) == 0 {
		return dst
	}
	table := *n.members.Load()
	now := time.Now()
	others := dst[start:]
	for _, match := range matches {
		if c, ok := n.candidate(table, match, now, seed, k); ok && !named(others, c.Peer) {
			dst = append(dst, c)
		}
	}
	slices.SortFunc(dst[start:], func(a, b Candidate) int { return cmp.Compare(b.rank, a.rank) })
	return dst
}

// candidate returns what is known of a match under a seed, ranked for a key, if it can be
// asked.
func (n *Node) candidate(table map[string]*member, match index.Match, now time.Time, seed uint64, k digest.Key) (Candidate, bool) {
	under, name := splitEntry(match.Peer)
	m := table[name]
	if under != seed || m == nil || !m.up.Load() {
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

func sortMembers(ms []Member) {
	slices.SortFunc(ms, func(a, b Member) int {
		if a.Alive != b.Alive {
			if a.Alive {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}
