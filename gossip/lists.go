package gossip

import (
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
)

const (
	// listInterval is the mean time between two exchanges of member lists with a random peer, in a
	// cluster of up to 32. Each doubling beyond adds as much.
	listInterval = 30 * time.Second
	// agreedListInterval is the interval while another peer has the same sum, and no peer differs
	// only in what vectors do not list. Sums do not show everything.
	agreedListInterval = 10 * time.Minute
)

// listLoop exchanges member lists with random peers. memberlist's own timer would do so as often
// even while all peers know the same.
func (g *group) listLoop() {
	interval := func() time.Duration {
		return listInterval * time.Duration(max(1, bits.Len(uint(len(g.liveMembers())))-4))
	}
	for last := time.Now(); g.sleep(interval()/2 + rand.N(interval())); {
		at, odd := g.callbacks.agreed() // half of a cluster may lack what the other half knows
		agreed := time.Since(at) < interval()
		live := g.liveMembers()
		if len(live) == 0 || agreed && odd == "" && time.Since(last) < agreedListInterval {
			continue
		}
		last = time.Now()
		m := live[rand.IntN(len(live))]
		if i := slices.IndexFunc(live, func(m *member) bool { return m.name == odd }); i >= 0 {
			m = live[i]
		}
		g.merge(m.name, m.info.Load().addr.String())
	}
}

// live returns the member called name if it is alive; otherwise nil.
func (g *group) live(name string) *member {
	if m := (*g.members.Load())[name]; m != nil && m.up.Load() {
		return m
	}
	return nil
}

func (g *group) liveMembers() (live []*member) {
	for _, m := range *g.members.Load() {
		if m.up.Load() {
			live = append(live, m)
		}
	}
	return live
}

// liveAt returns the live member at an address, or the only one of its host, whose port may be translated; nil if there
// is none.
func (g *group) liveAt(at netip.AddrPort) (found *member) {
	several := false
	for _, m := range g.liveMembers() {
		switch addr := m.info.Load().addr; {
		case addr == at:
			return m
		case addr.Addr() == at.Addr():
			several = several || found != nil
			found = m
		}
	}
	if several {
		return nil
	}
	return found
}

// sumSelf puts the hash of this peer's name and metadata, which have changed, into the sum of those of members;
// storeMembers does so for other members. It runs in the node's loop, or before the loop starts.
func (g *group) sumSelf() {
	sum := memberSum(g.cfg.Name, delegate{g}.NodeMeta(0))
	g.memberSum.Add(sum - g.selfSum)
	g.selfSum = sum
}

func memberSum(name string, meta []byte) uint64 {
	return uint64(digest.KeyOf(0, slices.Concat([]byte(name), []byte{0}, meta)))
}
