package sibling

import (
	"hash/fnv"
	"time"
)

// A member of the cluster, and the hash of its name.
type member struct {
	Peer
	hash uint64
}

// owner returns the member that remembers which peer fetches a key. It is the one of highest
// weight, so that a member that joins or leaves changes the owner of its own keys only. ok is
// false if there is no other member, or the owner is suspended or too slow.
func (c *Coalescer) owner(key uint64) (best Peer, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	if len(c.members) < 2 {
		return best, false
	}
	var highest uint64
	for _, m := range c.members {
		if w := mix(m.hash ^ key); w >= highest {
			best, highest = m.Peer, w
		}
	}
	r, all := c.cfg.Health.look(best.Name)
	now := time.Now()
	return best, !now.Before(r.suspendedUntil) && !now.Before(r.silentUntil) && r.roundTrip(all, now) <= askTimeout
}

// addr returns the address of a living member other than this one; "" = there is none of that name.
func (c *Coalescer) addr(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	for _, m := range c.members {
		if m.Name == name && name != c.cfg.Name {
			return m.Addr
		}
	}
	return ""
}

// refresh brings the list of members up to date. c.mu is held.
func (c *Coalescer) refresh() {
	now := time.Now()
	if c.members != nil && now.Sub(c.read) < membersFor {
		return
	}
	c.read, c.members = now, c.members[:0]
	for _, p := range append(c.cfg.Others(), Peer{Name: c.cfg.Name}) {
		h := fnv.New64a()
		h.Write([]byte(p.Name))
		c.members = append(c.members, member{p, mix(h.Sum64())})
	}
}

// mix is a bijection in which every input bit affects every output bit.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}
