package sibling

import (
	"sync"
	"time"
)

// A yield is what asking owners brings: the share of fetches that another peer makes at
// the same time. It is learned from the answers of owners, from requests that join a
// fetch here, and, for fetches without an owner, from digests: what another peer has
// come to advertise, and did not get here, it has fetched itself. It is safe for
// concurrent use.
type yield struct {
	mu    sync.Mutex
	share float64 // fading
	trip  average // to an owner and back, in seconds
	alone []lone  // fetches that no owner was asked about, oldest first
}

// A lone is a fetch that no owner was asked about.
type lone struct {
	identity string
	at       time.Time
}

const (
	yieldGain     = 1.0 / 32
	yieldUnknown  = 1.0 / 20         // share that pays while it isn't known what a fetch takes, or a round trip
	leastCoalesce = time.Millisecond // round trips below count as that
	loneFor       = 5 * time.Second  // after which others' digests list what they fetched meanwhile
	maxLone       = 256
)

func (y *yield) note(found bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.noteLocked(found)
}

func (y *yield) noteLocked(found bool) {
	y.share *= 1 - yieldGain
	if found {
		y.share += yieldGain
	}
}

// asked notes an owner's answer.
func (y *yield) asked(took time.Duration, found bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.trip.add(took.Seconds())
	y.noteLocked(found)
}

// pays reports whether an owner should be asked before a fetch that takes so long; 0 =
// unknown.
func (y *yield) pays(fetch time.Duration) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if fetch <= 0 || !y.trip.known {
		return y.share > yieldUnknown
	}
	return y.share*fetch.Seconds() > max(y.trip.value, leastCoalesce.Seconds())
}

// fetches notes a fetch that no owner is asked about, and looks after the earlier ones.
// advertised reports whether another peer's digest has an identity.
func (y *yield) fetches(identity string, now time.Time, advertised func(string) bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for len(y.alone) > 0 && now.Sub(y.alone[0].at) >= loneFor {
		if id := y.alone[0].identity; id != "" {
			y.noteLocked(advertised(id))
		}
		y.alone = y.alone[1:]
	}
	if len(y.alone) < maxLone {
		y.alone = append(y.alone, lone{identity, now})
	}
}

// served notes that another peer got an object here.
func (y *yield) served(identity string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i := range y.alone {
		if y.alone[i].identity == identity {
			y.alone[i].identity = ""
		}
	}
}
