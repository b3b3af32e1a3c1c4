package sibling

import "time"

// Inside returns what the command peer sees of a client beside its other methods. It is promised to nobody.
func (c *Client) Inside() inside { return inside{c} }

// inside is a [Client] with these methods.
type inside struct{ *Client }

// Plan returns the candidates that [Client.Lookup] would ask, in order. It asks none of them.
func (c inside) Plan(r LookupRequest) []Ranked {
	first, later := c.plan(&r)
	return append(first, later...)
}

// SetZoneCost replaces Config.ZoneCost, for a Client in use; below 0 = 0.
func (c inside) SetZoneCost(d time.Duration) { c.zoneCost.Store(int64(max(0, d))) }

// Load returns how well siblings answer now: the deadline of the next request, and the share of the requests of the
// last half minute that got no answer in time.
func (c inside) Load() (deadline time.Duration, lost float64) {
	return c.deadline(), c.cfg.Health.recently().lost
}

// ZoneBytes returns the bytes of bodies that the siblings of each zone sent. Of those without a zone it has none.
func (c inside) ZoneBytes() map[string]int64 {
	h := c.cfg.Health
	h.mu.Lock()
	defer h.mu.Unlock()
	bytes := make(map[string]int64, len(h.zones))
	for name, z := range h.zones {
		bytes[name] = z.bytes
	}
	return bytes
}
