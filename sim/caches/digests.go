package caches

import (
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

func newDigests(c *Cluster, geometry digest.Geometry, p publishing) (*digests, error) {
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
		p.demand.Note(d.keys[key])
	}
	for at := range d.caches {
		if at != cache && d.caches[at].published.MayContain(d.keys[key]) {
			dst = append(dst, at)
		}
	}
	return dst
}

func (d *digests) account(o *Outcomes) {
	o.Updates, o.UpdateBytes = d.updates, d.sent
	for i := range d.caches {
		o.Memory += d.memory(d.caches[i].published)
	}
	o.Memory = o.Memory * (len(d.caches) - 1) / len(d.caches)
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

// encodedCost is the cost of ours: a datagram with the bare delta. If that does not fit, there are an advert, a request
// for the version, and an answer: the delta coded against the base, or the filter if that is shorter.
func encodedCost(base, next *digest.Filter, d *digest.Delta) (bytes, messages int) {
	const advert, request = updateHeader, 64
	if change, err := d.AppendBare(nil, base); err == nil {
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
// defaults, and by the demand that it measures for new objects of the other caches.
type pacer struct {
	engine *engine.Engine
	demand engine.Demand
	of     int // the other cache that is watched
}

// clock is a trace's time, in seconds after its first request.
func clock(now float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(min(now, 9e9) * float64(time.Second)))
}

func newPacer(now float64) *pacer {
	at := clock(now)
	return &pacer{engine: engine.New(engine.Config{Name: "cache", Incarnation: engine.NewIncarnation(at, 1)}, at)}
}

// look measures the demand, with each of the other caches in turn.
func (p *pacer) look(now float64, self int, caches []digestOf) {
	asks, news := p.demand.Look(clock(now), func() func() *digest.Filter {
		p.of = (p.of + 1) % len(caches)
		if p.of == self {
			p.of = (p.of + 1) % len(caches)
		}
		watched := &caches[p.of]
		return func() *digest.Filter { return watched.published }
	})
	if news {
		p.engine.SetAsks(asks)
	}
}

// due reports whether the cache publishes now.
func (p *pacer) due(now float64, filter *digest.CountingFilter) bool {
	return p.engine.PublishIn(clock(now), filter.Changed()) == 0
}
