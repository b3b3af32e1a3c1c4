package systems

import (
	"math"
	"time"

	"github.com/summarycache/summarycache/digest"
	engine "github.com/summarycache/summarycache/gossip/exchange"
)

// publishing says when a cache's digest is sent, and what that costs.
type publishing struct {
	threshold float64 // publish when this share of the objects is new; or
	period    float64 // every so many seconds; or
	asPeers   bool    // when a running peer would
	cost      func(base, next *digest.Filter, d *digest.Delta) (bytes, messages int)
	memory    func(*digest.Filter) int // of a replica, in bytes
}

// digests keeps a counting filter in each cache, and what it last published.
type digests struct {
	publishing
	keys    []digest.Key
	caches  []digestOf
	updates int
	sent    int     // bytes
	start   float64 // the first request's time
	due     float64
	started bool
}

type digestOf struct {
	filter    *digest.CountingFilter
	published *digest.Filter
	held, new int
	changed   bool   // since the last update
	pacer     *pacer // nil if not asPeers
}

func newDigests(c *cluster, geometry digest.Geometry, p publishing) (*digests, error) {
	d := &digests{publishing: p, keys: c.keys, caches: make([]digestOf, c.caches)}
	for i := range d.caches {
		filter, err := digest.NewCountingFilter(geometry, 1)
		if err != nil {
			return nil, err
		}
		d.caches[i] = digestOf{filter: filter, published: filter.Current()}
	}
	return d, nil
}

func (d *digests) came(cache int, key uint32) {
	c := &d.caches[cache]
	c.filter.Add(d.keys[key])
	c.held++
	c.new++
	c.changed = true
	if d.threshold > 0 && float64(c.new) >= d.threshold*float64(c.held) {
		d.publish(c)
	}
}

func (d *digests) left(cache int, key uint32) {
	c := &d.caches[cache]
	c.filter.Remove(d.keys[key])
	c.held--
	c.changed = true
}

func (d *digests) publish(c *digestOf) *digest.Delta {
	base := c.published
	next, delta := c.filter.AdvanceDelta()
	c.published, c.new, c.changed = next, 0, false
	bytes, messages := d.cost(base, next, delta)
	d.updates += messages * (len(d.caches) - 1)
	d.sent += bytes * (len(d.caches) - 1)
	return delta
}

func (d *digests) tick(now float64) {
	if !d.started {
		d.started, d.start, d.due = true, now, now+d.period
	}
	if d.asPeers {
		d.pace(now - d.start)
	}
	if d.period == 0 {
		return
	}
	if now < d.due {
		return
	}
	for i := range d.caches {
		d.publish(&d.caches[i])
	}
	// In periods without requests, the same digest is sent again each time.
	for d.due += d.period; d.due <= now; d.due += d.period {
		for i := range d.caches {
			d.publish(&d.caches[i])
		}
	}
}

// pace publishes what running peers would have published by now, a time in seconds after
// the first request.
func (d *digests) pace(now float64) {
	for i := range d.caches {
		c := &d.caches[i]
		if c.pacer == nil {
			c.pacer = newPacer(now)
		}
		c.pacer.look(now, i, d.caches)
		if !c.changed || !c.pacer.due(now, c.filter) {
			continue
		}
		delta := d.publish(c)
		c.pacer.engine.Publish(clock(now), c.published, delta)
	}
}

func (d *digests) candidates(dst []int, cache int, key uint32) []int {
	if p := d.caches[cache].pacer; p != nil {
		p.asked(d.keys[key])
	}
	for at := range d.caches {
		if at != cache && d.caches[at].published.MayContain(d.keys[key]) {
			dst = append(dst, at)
		}
	}
	return dst
}

func (d *digests) account(o *outcomes) {
	o.updates, o.updateBytes = d.updates, d.sent
	for i := range d.caches {
		o.memory += d.memory(d.caches[i].published)
	}
	o.memory = o.memory * (len(d.caches) - 1) / len(d.caches)
}

func arrayBytes(f *digest.Filter) int { return int(f.Geometry().Bits+7) / 8 }

// recordsCost is the cost of Summary Cache's updates: a record of 32 bits for each bit that
// flipped, or the array if that is shorter.
func recordsCost(_, next *digest.Filter, d *digest.Delta) (bytes, messages int) {
	return updateHeader + min(4*d.Len(), arrayBytes(next)), 1
}

// wholeArrayCost is the cost of Squid's: a request, and the array after a header of 128 bytes.
func wholeArrayCost(_, next *digest.Filter, _ *digest.Delta) (bytes, messages int) {
	const header, request = 128, 200
	return request + header + arrayBytes(next), 2
}

// hashesCost is the cost of truncated hashes, which are positions of one hash function over
// 2^bits: the list of those that were added and removed, or of all if that is shorter.
func hashesCost(bits int) func(_, next *digest.Filter, d *digest.Delta) (bytes, messages int) {
	return func(_, next *digest.Filter, d *digest.Delta) (bytes, messages int) {
		return updateHeader + (min(d.Len(), int(next.Ones()))*bits+7)/8, 1
	}
}

// encodedCost is the cost of ours: a datagram with the delta, packed or bare, whichever is
// shorter. If that does not fit, there are an advert, a request for the version, and an answer:
// the delta coded against the base, or the filter if that is shorter.
func encodedCost(base, next *digest.Filter, d *digest.Delta) (bytes, messages int) {
	const advert, request = updateHeader, 64
	if change, err := d.AppendBare(nil, base); err == nil {
		if packed, err := d.AppendPacked(nil, base); err == nil && len(packed) < len(change) {
			change = packed
		}
		if advert+len(change) <= engine.MaxDatagram {
			return advert + len(change), 1
		}
	}
	body, err := d.AppendTo(nil, base)
	if err != nil || base.Ones() == 0 {
		if snapshot := next.AppendTo(nil); err != nil || len(snapshot) < len(body) {
			body = snapshot
		}
	}
	return advert + request + len(body), 3
}

// A pacer decides when to publish as a running peer does: by its engine's rule with the
// defaults. The rule needs the rate of requests for siblings' new objects, which is measured as
// in package gossip.
type pacer struct {
	engine  *engine.Engine
	lookups []digest.Key // since the measurement began

	of             int            // the other cache whose changes are measured
	base           *digest.Filter // its filter at the beginning; nil before the first measurement
	since          float64        // when the measurement began
	asks, exposure float64        // requests for new objects, and changes × seconds
}

// The parameters of the measurement in package gossip.
const (
	lookKeys   = 1024
	lookEnough = 128   // lookups
	lookLeast  = 1.0   // seconds
	lookMost   = 30.0  // seconds
	lookMemory = 300.0 // seconds
	lookPrior  = 100.0 // changes × seconds
)

// clock is a trace's time, in seconds after its first request.
func clock(now float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(min(now, 9e9) * float64(time.Second)))
}

func newPacer(now float64) *pacer {
	at := clock(now)
	return &pacer{engine: engine.New(engine.Config{Name: "cache", Incarnation: engine.NewIncarnation(at, 1)}, at)}
}

// asked records the key of a lookup.
func (p *pacer) asked(key digest.Key) {
	if len(p.lookups) == lookKeys {
		p.lookups = p.lookups[1:]
	}
	p.lookups = append(p.lookups, key)
}

// look counts the requests for new objects of the measured cache. When it has enough, it goes
// on to the next cache.
func (p *pacer) look(now float64, self int, caches []digestOf) {
	age := now - p.since
	if p.base != nil && age < lookMost && (age < lookLeast || len(p.lookups) < lookEnough) {
		return
	}
	if p.base != nil {
		f := caches[p.of].published
		if change, err := digest.Diff(p.base, f); err == nil && change.Len() > 0 {
			keep := math.Exp(-age / lookMemory)
			p.asks *= keep
			p.exposure = p.exposure*keep + float64(change.Len())*age
			for _, k := range p.lookups {
				if f.MayContain(k) && !p.base.MayContain(k) {
					p.asks++
				}
			}
			p.engine.SetAsks((p.asks + engine.PriorAsks*lookPrior) / (p.exposure + lookPrior))
		}
	}
	p.of = (p.of + 1) % len(caches)
	if p.of == self {
		p.of = (p.of + 1) % len(caches)
	}
	p.base, p.since, p.lookups = caches[p.of].published, now, p.lookups[:0]
}

// due reports whether the cache publishes now.
func (p *pacer) due(now float64, filter *digest.CountingFilter) bool {
	return p.engine.PublishIn(clock(now), filter.Changed()) == 0
}
