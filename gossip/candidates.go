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
	Service           string        // host:port where it answers siblings
	Zone              string        // where it runs; may be empty
	Near              bool          // it runs in this peer's zone
	Age               time.Duration // since its digest was last known to be current
	FalsePositiveRate float64       // probability that its digest claims an object that it does not hold, 0 to 1
	Incarnation       uint64        // of its present life
	Via               string        // the peer that named it to a light one; empty if this peer's own digests do

	rank uint64 // differs from object to object
}

// maxMatches is how many matches a lookup handles without an allocation.
const maxMatches = 32

// Candidates appends to dst the live peers that probably hold the object of an identity, and
// returns the result. The order differs from object to object, so that the load is spread. It does
// not depend on how well the peers answer: a client in package sibling measures that. Peers without
// a service address are left out. Candidates does no I/O, never waits, and allocates only to grow
// dst.
//
// The identity is the one that the peers give to [Holdings.Add]. It is hashed under each digest
// seed in use: one, or two while the cluster changes its seed. A peer is found even if its digest
// moves from one seed to the other during the call.
func (n *Node) Candidates(dst []Candidate, identity string) []Candidate {
	seeds := n.made().digestSeeds()
	n.demand.Note(digest.KeyOfString(seeds[0], identity))
	start := len(dst)
	// A digest may move to a seed after that was looked up, and before its old one is. The second
	// round finds it.
	for range min(len(seeds), 2) {
		for _, seed := range seeds {
			dst = n.candidatesOf(dst, start, digest.KeyOfString(seed, identity))
		}
	}
	return dst
}

// CandidatesByKey is [Node.Candidates] for a key that the program made itself, by [digest.KeyOf]
// under [Node.Seed]. It finds nothing in digests under another seed. If the seed may change while
// the node runs, use Candidates.
func (n *Node) CandidatesByKey(dst []Candidate, k digest.Key) []Candidate {
	n.made().demand.Note(k)
	return n.candidatesOf(dst, len(dst), k)
}

// candidatesOf appends to dst the peers that probably have a key, and sorts dst[start:].
func (h *host) candidatesOf(dst []Candidate, start int, k digest.Key) []Candidate {
	var buf [maxMatches]index.Match
	return h.rank(dst, start, h.index.Lookup(buf[:0], k), k)
}

// rank appends to dst the matches that are candidates and not in dst[start:], ranked for a key, and
// sorts dst[start:].
func (h *host) rank(dst []Candidate, start int, matches []index.Match, k digest.Key) []Candidate {
	if len(matches) == 0 {
		return dst
	}
	table, now, others := *h.members.Load(), time.Now(), dst[start:]
	for _, match := range matches {
		c, ok := h.candidate(table, match, now, k)
		if ok && !slices.ContainsFunc(others, func(o Candidate) bool { return o.Peer == c.Peer }) {
			dst = append(dst, c)
		}
	}
	slices.SortFunc(dst[start:], func(a, b Candidate) int { return cmp.Compare(b.rank, a.rank) })
	return dst
}

// candidate returns the candidate for a match, ranked for a key, if the peer is live and answers
// siblings.
func (h *host) candidate(table memberTable, match index.Match, now time.Time, k digest.Key) (Candidate, bool) {
	m := table[match.Peer]
	if m == nil || !m.up.Load() || now.UnixNano() < m.doubtful.Load() {
		return Candidate{}, false
	}
	info := m.info.Load()
	return Candidate{
		Peer:              m.name,
		Service:           info.meta.Service,
		Zone:              info.meta.Zone,
		Near:              h.cfg.Zone != "" && info.meta.Zone == h.cfg.Zone,
		Age:               max(0, now.Sub(time.Unix(0, m.fresh.Load()))),
		FalsePositiveRate: match.FalsePositiveRate,
		Incarnation:       info.meta.Incarnation,
		rank:              m.id.Rank(k),
	}, info.meta.Service != ""
}

// Distrust fetches a peer's digest anew. Call it if the peer lacks so many of the objects that its
// digest claims that it is not asked any more.
func (n *Node) Distrust(peer string) {
	n.made().log.LogAttrs(n.ctx, slog.LevelWarn, "quarantined a peer: it lacks most of what its digest claims",
		slog.String("member", peer))
	n.update(func(e *exchange.Engine) { e.Distrust(peer) })
}
