package gossip

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// demand measures how often this peer looks up new objects of its siblings. It watches the digest of
// one sibling for a while. Then it counts the lookups of that time for objects that the sibling
// stored in that time, including lookups that came before the object was advertised.
type demand struct {
	keys [demandKeys]atomic.Uint64 // of the last lookups
	at   atomic.Uint64             // lookups so far

	// Of the node's loop only.
	of       *member        // the sibling watched; nil if none is
	base     *digest.Filter // its digest when the watch began
	since    time.Time      // when the watch began
	from     uint64         // at, when the watch began
	asks     float64        // lookups counted, and
	exposure float64        // the changes × seconds to which they apply; both decay
}

const (
	demandKeys   = 1024
	demandWindow = 30 * time.Second // in which a change is new
	demandLeast  = time.Second
	demandEnough = 128             // lookups
	demandMemory = 5 * time.Minute // in which past measurements decay to 1/e
	// demandPrior is the weight of exchange.PriorAsks, the assumption before any measurement, in
	// changes × seconds.
	demandPrior = 100.0
)

// note records the key of a lookup. It may be called at any time.
func (d *demand) note(k digest.Key) {
	d.keys[d.at.Add(1)%demandKeys].Store(uint64(k))
}

// look ends the watch of a sibling when that has taken long enough, begins the next, and returns the
// rate of lookups per change. news is false if the rate has not changed. live returns the siblings.
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

// count adds the lookups and changes of the watch of a sibling, unless its digest did not change.
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
