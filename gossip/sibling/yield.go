package sibling

import (
	"sync"
	"time"
)

// A yield estimates whether it pays to ask owners, from the share of fetches that another peer
// makes at the same time. Its sources are the answers of owners, requests that join a fetch
// here and, for fetches about which no owner was asked, digests: if another peer advertises the
// object a little later, and did not get it here, that peer fetched it as well. A yield is safe
// for concurrent use.
type yield struct {
	mu    sync.Mutex
	share float64     // older fetches have less weight
	trip  average     // round trip to an owner, in seconds
	alone []loneFetch // oldest first
}

// A loneFetch is a fetch about which no owner was asked.
type loneFetch struct {
	identity string // "" = another peer got the object here
	at       time.Time
}

const (
	yieldGain     = 1.0 / 32
	yieldUnknown  = 1.0 / 20         // share that pays while the time of a fetch or of a round trip is unknown
	leastCoalesce = time.Millisecond // shorter round trips count as this
	loneFor       = 5 * time.Second  // after which the digests of others advertise what they fetched at the time
	maxLone       = 256
)

// note adds a fetch, and whether another peer made it, too. y.mu is held.
func (y *yield) note(found bool) {
	y.share *= 1 - yieldGain
	if found {
		y.share += yieldGain
	}
}

// joined notes that a request joined a fetch here.
func (y *yield) joined() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.note(true)
}

// asked notes the answer of an owner.
func (y *yield) asked(took time.Duration, found bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.trip.add(took.Seconds())
	y.note(found)
}

// pays reports whether an owner should be asked before a fetch that takes that long; 0 = unknown.
func (y *yield) pays(fetch time.Duration) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if fetch <= 0 || !y.trip.known {
		return y.share > yieldUnknown
	}
	return y.share*fetch.Seconds() > max(y.trip.value, leastCoalesce.Seconds())
}

// fetches adds a fetch about which no owner is asked, and judges those that are old enough.
// advertised reports whether the digest of another peer has an identity.
func (y *yield) fetches(identity string, now time.Time, advertised func(string) bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for len(y.alone) > 0 && now.Sub(y.alone[0].at) >= loneFor {
		if id := y.alone[0].identity; id != "" {
			y.note(advertised(id))
		}
		y.alone = y.alone[1:]
	}
	if len(y.alone) < maxLone {
		y.alone = append(y.alone, loneFetch{identity, now})
	}
}

// served notes that another peer got an object from this one.
func (y *yield) served(identity string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i := range y.alone {
		if y.alone[i].identity == identity {
			y.alone[i].identity = ""
		}
	}
}
