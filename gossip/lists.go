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
func (n *Node) listLoop() {
	interval := func() time.Duration {
		return listInterval * time.Duration(max(1, bits.Len(uint(len(n.liveMembers())))-4))
	}
	for last := time.Now(); n.sleep(interval()/2 + rand.N(interval())); {
		n.mu.Lock()
		agreed := time.Since(n.engine.AgreedAt()) < interval()
		odd := n.engine.TakeAtOdds() // half of a cluster may lack what the other half knows
		n.mu.Unlock()
		live := n.liveMembers()
		if len(live) == 0 || agreed && odd == "" && time.Since(last) < agreedListInterval {
			continue
		}
		last = time.Now()
		m := live[rand.IntN(len(live))]
		if i := slices.IndexFunc(live, func(m *member) bool { return m.name == odd }); i >= 0 {
			m = live[i]
		}
		n.merge(m.name, m.info.Load().addr.String())
	}
}

// live returns the member called name if it is alive; otherwise nil.
func (n *Node) live(name string) *member {
	if m := (*n.members.Load())[name]; m != nil && m.up.Load() {
		return m
	}
	return nil
}

func (n *Node) liveMembers() (live []*member) {
	for _, m := range *n.members.Load() {
		if m.up.Load() {
			live = append(live, m)
		}
	}
	return live
}

// liveAt returns the name of the live member at an address; "" if there is none.
func (n *Node) liveAt(at netip.AddrPort) string {
	for _, m := range n.liveMembers() {
		if m.info.Load().addr == at {
			return m.name
		}
	}
	return ""
}

// watched chooses a live sibling whose digest is under the node's seed, for [exchange.Demand].
func (n *Node) watched() (current func() *digest.Filter) {
	live := n.liveMembers()
	if len(live) == 0 {
		return nil
	}
	m := live[rand.IntN(len(live))]
	if f := m.inUse.Load(); f == nil || f.Geometry().Seed != n.Seed() {
		return nil
	}
	return m.inUse.Load
}

// sumMembers counts the live members, and updates the hash of their names and metadata and this one's. It
// runs in the node's loop, or before the loop starts.
func (n *Node) sumMembers() {
	sum := memberSum(n.cfg.Name, delegate{n}.NodeMeta(0))
	live := n.liveMembers()
	for _, m := range live {
		sum += memberSum(m.name, m.info.Load().metadata)
	}
	n.memberSum.Store(sum)
	n.others.Store(int32(len(live)))
}

func memberSum(name string, meta []byte) uint64 {
	return uint64(digest.KeyOf(0, slices.Concat([]byte(name), []byte{0}, meta)))
}
