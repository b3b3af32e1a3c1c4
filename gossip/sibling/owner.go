package sibling

import (
	"hash/fnv"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// owners knows the owner of each key: the member of highest weight for the slot that the key is in, so
// that a member that joins or leaves changes the owner of its own slots only. It is not safe for
// concurrent use.
type owners struct {
	members []member
	bySlot  []uint16 // 1 + the index of a slot's owner in members; 0 = not computed since a former one left
}

// A member of the cluster, and the hash of its name.
type member struct {
	Peer
	hash uint64
}

const (
	slotBits = 16
	// maxMembers is how many members there may be: beyond it bySlot has no numbers.
	maxMembers = 1<<16 - 1
)

// slot returns the slot of a key.
func slot(key uint64) uint64 { return wire.Mix(key) >> (64 - slotBits) }

// weight returns how much a member wants a slot.
func (m member) weight(slot uint64) uint64 { return wire.Mix(m.hash ^ slot<<(64-slotBits)) }

// of returns the owner of a key; the zero Peer if there are no members.
func (o *owners) of(key uint64) Peer {
	if len(o.members) == 0 {
		return Peer{}
	}
	s := slot(key)
	if o.bySlot[s] == 0 {
		best := 0
		for i, m := range o.members {
			if m.weight(s) >= o.members[best].weight(s) {
				best = i
			}
		}
		o.bySlot[s] = uint16(best + 1)
	}
	return o.members[o.bySlot[s]-1].Peer
}

// set replaces the members. Slots keep their owners, unless these left or a member that joined has a
// higher weight: hashing all members for each slot would take a second for ten thousand.
func (o *owners) set(list []Peer) {
	list = list[:min(len(list), maxMembers)]
	if o.bySlot == nil {
		o.bySlot = make([]uint16, 1<<slotBits)
	}
	was := make(map[string]int, len(o.members))
	for i, m := range o.members {
		was[m.Name] = i
	}
	moved, members := make([]uint16, len(o.members)+1), make([]member, len(list))
	var joined []int
	for i, p := range list {
		if at, known := was[p.Name]; known {
			members[i], moved[at+1] = member{p, o.members[at].hash}, uint16(i+1)
			continue
		}
		h := fnv.New64a()
		h.Write([]byte(p.Name))
		members[i], joined = member{p, wire.Mix(h.Sum64())}, append(joined, i)
	}
	o.members = members
	for s, at := range o.bySlot {
		if at = moved[at]; at != 0 {
			for _, i := range joined {
				if members[i].weight(uint64(s)) > members[at-1].weight(uint64(s)) {
					at = uint16(i + 1)
				}
			}
		}
		o.bySlot[s] = at
	}
}

// owner returns the member that remembers which peer fetches a key. ok is
// false if there is no other member, or the owner is suspended or too slow.
func (c *Coalescer) owner(key uint64) (best Peer, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	if len(c.owners.members) < 2 {
		return best, false
	}
	best = c.owners.of(key)
	r, others := c.cfg.Health.look(best.Name)
	now := time.Now()
	return best, !now.Before(r.suspendedUntil) && !now.Before(r.silentUntil) && r.roundTrip(others, now) <= askTimeout
}

// addr returns the address of a living member other than this one; "" = there is none of that name.
func (c *Coalescer) addr(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	for _, m := range c.owners.members {
		if m.Name == name && name != c.cfg.Name {
			return m.Addr
		}
	}
	return ""
}

// refresh brings the list of members up to date. c.mu is held.
func (c *Coalescer) refresh() {
	now := time.Now()
	if c.owners.members != nil && now.Sub(c.read) < membersFor {
		return
	}
	c.read = now
	c.owners.set(append(c.cfg.Others(), Peer{Name: c.cfg.Name}))
}
