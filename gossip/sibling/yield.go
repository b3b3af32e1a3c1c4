package sibling

import (
	"slices"
	"sync"
	"time"
)

// A yield estimates whether it pays to ask owners, from the share of fetches here of which another
// peer wants the object at about the same time. Its sources are:
//   - the answers of owners: another peer was first;
//   - requests that join a fetch here;
//   - peers that an owner has sent here: this one was first. If none comes in time, the object is
//     wanted by nobody else. A peer that comes since a digest led it here is no evidence: a little
//     earlier an owner would have sent it;
//   - digests, for fetches about which no owner was asked. If another peer advertises the
//     object a little later, and did not get it here, that peer fetched it as well.
//
// A yield is safe for concurrent use.
type yield struct {
	mu    sync.Mutex
	share float64     // older fetches have less weight
	trip  average     // round trip to an owner, in seconds
	alone []loneFetch // oldest first; while it is full, answers of owners are not counted
	open  int         // of alone

	removed int       // this many fetches ask owners in any case
	until   time.Time // but none after that
}

// A loneFetch is a fetch of an object that no other peer wants, as far as this one knows.
type loneFetch struct {
	identity string
	at       time.Time
	asked    bool // an owner was
	noted    bool // as wanted by nobody else
}

const (
	yieldGain     = 1.0 / 32
	yieldUnknown  = 1.0 / 20         // share that pays while the time of a fetch or of a round trip is unknown
	yieldAtFirst  = 3.0 / 4          // share while nothing is known
	yieldAlways   = 1.0 / 2          // share that pays however short a fetch is: it spares the origin one fetch in two
	leastCoalesce = time.Millisecond // shorter round trips count as this
	loneFor       = 5 * time.Second  // after which the digests of others advertise what they fetched at the time
	openFor       = coalesceFor      // after which no owner sends other peers here for what is fetched soon
	removedFor    = time.Minute      // in which objects that are in demand are fetched again
	maxLone       = 256
	// fetches about which an owner was asked that are not noted yet; another peer may be so many behind
	maxOpen = 22
)

// note adds a fetch, and whether another peer wants the object, too. y.mu is held.
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

// asked notes the answer of an owner, which took that long: whether another peer was first.
func (y *yield) asked(identity string, took time.Duration, found bool, now time.Time, advertised func(string) bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.trip.add(took.Seconds())
	y.judge(now, advertised)
	if len(y.alone) == maxLone {
		return
	}
	if found {
		y.note(true)
		return
	}
	y.alone = append(y.alone, loneFetch{identity: identity, at: now, asked: true})
	if y.open++; y.open > maxOpen {
		y.noteOpen(slices.IndexFunc(y.alone, loneFetch.open))
	}
}

func (f loneFetch) open() bool { return f.asked && !f.noted }

// noteOpen notes that no other peer wants the object of an open fetch. y.mu is held.
func (y *yield) noteOpen(i int) {
	y.alone[i].noted = true
	y.open--
	y.note(false)
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
	return false
}

// fetches adds a fetch about which no owner is asked.
func (y *yield) fetches(identity string, now time.Time, advertised func(string) bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.judge(now, advertised)
	if len(y.alone) < maxLone {
		y.alone = append(y.alone, loneFetch{identity: identity, at: now})
	}
}

// judge notes the fetches that are old enough, and removes the oldest. advertised reports whether the
// digest of another peer has an identity. y.mu is held.
func (y *yield) judge(now time.Time, advertised func(string) bool) {
	for i := range y.alone {
		if y.open == 0 || now.Sub(y.alone[i].at) < openFor {
			break
		}
		if y.alone[i].open() {
			y.noteOpen(i)
		}
	}
	for len(y.alone) > 0 && now.Sub(y.alone[0].at) >= loneFor {
		if f := y.alone[0]; !f.asked {
			y.note(advertised(f.identity))
		}
		y.alone = y.alone[1:]
	}
}

// served notes that another peer got an object from this one. sent means that an owner had sent it
// here.
func (y *yield) served(identity string, sent bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.alone = slices.DeleteFunc(y.alone, func(f loneFetch) bool {
		switch {
		case f.identity != identity:
			return false
		case f.open():
			y.open--
			if sent {
				y.note(true)
			}
		case f.noted && sent:
			y.share = min(1, y.share+yieldGain) // the opposite was noted
		}
		return true
	})
}
