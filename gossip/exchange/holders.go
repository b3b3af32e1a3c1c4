package exchange

import (
	"cmp"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// Rank orders the peers that have a key, so that different keys have different orders.
func (id ID) Rank(k digest.Key) uint64 { return wire.Mix(uint64(k) ^ uint64(id)) }

// A Named peer has a digest with a key.
type Named struct {
	Peer           ID
	FalsePositives float64       // rate of its digest
	Age            time.Duration // of its digest
	Far            bool          // it is not in the asker's zone
}

// Reply answers the question of asker, if this peer has all digests, which complete says. named appends the peers whose
// digests have a key. Of these it names those in the asker's zone first, and to each asker others.
func (q Question) Reply(asker ID, complete bool, named func(dst []Named, k digest.Key) []Named) Reply {
	r := Reply{Number: q.Number, NotYet: !complete}
	if !complete {
		return r
	}
	type ranked struct {
		Holder
		far  int
		rank uint64
	}
	var all []ranked
	var buf [32]Named
	for i, k := range q.Keys {
		for _, n := range named(buf[:0], k) {
			far := 0
			if n.Far {
				far = 1
			}
			if n.Peer != asker {
				rank := wire.Mix(n.Peer.Rank(k) ^ uint64(asker))
				all = append(all, ranked{holderOf(n.Peer, i, n.FalsePositives, n.Age), far, rank})
			}
		}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(b.rank, a.rank))
	})
	for _, n := range all[:min(len(all), MaxHolders)] {
		r.Holders = append(r.Holders, n.Holder)
	}
	return r
}
