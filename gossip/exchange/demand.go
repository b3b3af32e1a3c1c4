package exchange

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Demand measures how often a peer looks up new objects of its siblings, for [Engine.SetAsks]. It
// watches the digest of one sibling for a while. Then it counts the lookups of that time for objects
// that the sibling stored in that time, including lookups that came before the object was advertised.
// Its zero value is ready. Note may be called at any time, and Look by one goroutine at a time.
type Demand struct {
	keys [demandKeys]atomic.Uint64 // of the last lookups
	at   atomic.Uint64             // lookups so far

	// Of Look only.
	current  func() *digest.Filter // the digest of the sibling that is watched; nil if none is
	base     *digest.Filter        // as it was when the watch began
	since    time.Time             // when the watch began
	from     uint64                // at, when the watch began
	asks     float64               // lookups counted, and
	exposure float64               // the changes × seconds to which they apply; both decay
}

const (
	demandKeys   = 1024
	demandWindow = 30 * time.Second // in which a change is new
	demandLeast  = time.Second
	demandEnough = 128             // lookups
	demandMemory = 5 * time.Minute // in which past measurements decay to 1/e
	// demandPrior is the weight of priorAsks, the assumption before any measurement, in
	// changes × seconds.
	demandPrior = 100.0
)

// Note records the key of a lookup.
func (d *Demand) Note(k digest.Key) {
	d.keys[d.at.Add(1)%demandKeys].Store(uint64(k))
}

// Look ends the watch of a sibling when that has taken long enough, begins the next, and returns the
// rate of lookups per change. news is false if the rate has not changed. next chooses a sibling, and
// returns what returns its digest in use; nil, or a nil digest, is none.
func (d *Demand) Look(now time.Time, next func() (current func() *digest.Filter)) (perChange float64, news bool) {
	lookups := d.at.Load() - d.from
	age := now.Sub(d.since)
	if age < demandLeast || d.base != nil && age < demandWindow && lookups < demandEnough {
		return 0, false
	}
	if d.base != nil {
		news = d.count(age.Seconds(), min(lookups, demandKeys))
	}
	d.base = nil
	if d.current = next(); d.current != nil {
		d.base = d.current()
	}
	d.since, d.from = now, d.at.Load()
	return (d.asks + priorAsks*demandPrior) / (d.exposure + demandPrior), news
}

// count adds the lookups and changes of the watch of a sibling, unless its digest did not change.
func (d *Demand) count(seconds float64, lookups uint64) bool {
	f := d.current()
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
