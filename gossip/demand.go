package gossip

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// demand measures how often new objects of siblings are looked up here. It watches the digest
// of one sibling for a while. Then it counts the lookups of this peer in that time that were for
// objects which the sibling got in that time, whether they
// came too early to find them or not.
type demand struct {
	keys [demandKeys]atomic.Uint64 // of the last lookups
	at   atomic.Uint64             // lookups so far

	// Of the node's loop only.
	of       *member        // who is watched; nil if nobody is
	base     *digest.Filter // what it had when that began
	since    time.Time
	from     uint64 // lookups before that
	asks     float64
	exposure float64 // changes × seconds
}

const (
	demandKeys   = 1024
	demandWindow = 30 * time.Second // in which a change is new
	demandLeast  = time.Second
	demandEnough = 128             // lookups
	demandMemory = 5 * time.Minute // in which what was seen loses most of its weight
	// demandPrior is the weight of what is supposed before anything was seen, in changes
	// × seconds.
	demandPrior = 100.0
)

// note keeps the key of a lookup. It may be called at any time.
func (d *demand) note(k digest.Key) {
	d.keys[d.at.Add(1)%demandKeys].Store(uint64(k))
}

// look ends watching a sibling after its time, begins with the next, and returns the
// rate of lookups per change. live are the siblings.
func (d *demand) look(now time.Time, seed uint64, live func() []*member) (perChange float64, news bool) {
	lookups := d.at.Load() - d.from
	age := now.Sub(d.since)
	if d.of != nil && age < demandWindow && (age < demandLeast || lookups < demandEnough) {
		return 0, false
	}
	if d.of != nil {
		news = d.count(age.Seconds(), min(lookups, demandKeys))
	}
	d.of = nil
	if all := live(); len(all) > 0 {
		m := all[rand.IntN(len(all))]
		if f := m.inUse.Load(); f != nil && f.Geometry().Seed == seed {
			d.of, d.base = m, f
		}
	}
	d.since, d.from = now, d.at.Load()
	return (d.asks + exchange.PriorAsks*demandPrior) / (d.exposure + demandPrior), news
}

// count adds what was seen of a sibling.
func (d *demand) count(seconds float64, lookups uint64) bool {
	f := d.of.inUse.Load()
	if f == nil || f == d.base {
		return false
	}
	change, err := digest.Diff(d.base, f)
	if err != nil {
		return false // of another geometry
	}
	keep := math.Exp(-seconds / demandMemory.Seconds())
	d.asks *= keep
	d.exposure = d.exposure*keep + float64(change.Len())*seconds
	last := d.at.Load()
	for i := range lookups {
		k := digest.Key(d.keys[(last-i)%demandKeys].Load())
		if f.MayContain(k) && !d.base.MayContain(k) {
			d.asks++
		}
	}
	return true
}
