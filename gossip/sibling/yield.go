package sibling

import (
	"sync"
	"time"
)

// A yield estimates whether it pays to ask owners, from the share of fetches here of which another
// peer wants the object at about the same time. That is shown by
//   - the answers of owners: another peer was first, or nobody is known;
//   - requests that join a fetch here;
//   - peers that an owner has sent here: this one was first. A peer that comes since a digest led it
//     here shows nothing: a little earlier an owner would have sent it.
//
// While it does not pay, one fetch in so many asks all the same, so that it is noticed when it does again.
// A yield is safe for concurrent use.
type yield struct {
	mu    sync.Mutex
	share float64 // older fetches have less weight
	trip  average // round trip to an owner, in seconds
	spare int     // fetches since one asked though it did not pay

	removed int       // this many fetches ask owners in any case
	until   time.Time // but none after that
}

const (
	yieldGain     = 1.0 / 32
	yieldUnknown  = 1.0 / 20         // share that pays while the time of a fetch or of a round trip is unknown
	yieldAtFirst  = 3.0 / 4          // share while nothing is known
	yieldAlways   = 1.0 / 3          // share that pays however short a fetch is: it spares the origin one fetch in three
	yieldProbe    = 64               // one fetch in so many asks if it does not pay
	leastCoalesce = time.Millisecond // shorter round trips count as this
	removedFor    = time.Minute      // in which objects that are in demand are fetched again
)

// wanted notes a fetch, and whether another peer wants the object, too.
func (y *yield) wanted(found bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.note(found)
}

// note is wanted with y.mu held.
func (y *yield) note(found bool) {
	y.share *= 1 - yieldGain
	if found {
		y.share += yieldGain
	}
}

// asked notes the answer of an owner, which took that long: whether another peer was first.
func (y *yield) asked(took time.Duration, found bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.trip.add(took.Seconds())
	y.note(found)
}

// removes notes that an invalidation has removed n objects here, and so at all peers, which now all
// miss them: that many fetches ask owners, whatever the share was before.
func (y *yield) removes(n int, now time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if now.After(y.until) {
		y.removed = 0
	}
	y.removed, y.until = y.removed+n, now.Add(removedFor)
}

// pays reports whether an owner should be asked before a fetch that takes that long; 0 = unknown.
func (y *yield) pays(fetch time.Duration, now time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	known := fetch > 0 && y.trip.known
	switch {
	case y.share > yieldAlways, !known && y.share > yieldUnknown,
		known && y.share*fetch.Seconds() > max(y.trip.value, leastCoalesce.Seconds()):
		return true
	case y.removed > 0 && now.Before(y.until):
		y.removed--
		return true
	}
	y.spare++
	return y.spare%yieldProbe == 0
}
