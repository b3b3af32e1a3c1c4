package sibling

import (
	"hash/fnv"
	"time"
)

// owner is the member that remembers which peer fetches a key: the one of highest
// weight, so that a member which comes or goes takes only its own keys along. It isn't
// ok if there is nobody else, or the owner does badly.
func (c *Coalescer) owner(key uint64) (best Peer, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
	if len(c.members) < 2 {
		return best, false
	}
	var most uint64
	for i, m := range c.members {
		if w := mix(c.hashes[i] ^ key); w >= most {
			best, most = m, w
		}
	}
	r := c.cfg.Health.Of(best.Name)
	return best, !r.Suspended && r.RoundTrip < askTimeout
}

// addr is where a living member other than this one answers; "" = nowhere.
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

// refresh brings the members up to date. It is called with c.mu held.
func (c *Coalescer) refresh() {
	now := time.Now()
	if c.members != nil && now.Sub(c.read) < membersFor {
		return
	}
	c.read, c.members, c.hashes = now, append(c.cfg.Others(), Peer{Name: c.cfg.Name}), c.hashes[:0]
	for _, m := range c.members {
		h := fnv.New64a()
		h.Write([]byte(m.Name))
		c.hashes = append(c.hashes, mix(h.Sum64()))
	}
}

// mix is a bijection in which every input bit moves every output bit.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}
