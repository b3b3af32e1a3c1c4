package main

import (
	"math"
	"time"

	"github.com/summarycache/summarycache/digest"
	engine "github.com/summarycache/summarycache/gossip/exchange"
)

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
