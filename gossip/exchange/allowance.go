package exchange

import "time"

// An allowance is a token bucket: snapshotBurst tokens at once, then one per interval. After twice
// the burst, and again after each further burst, the interval doubles.
type allowance struct {
	spent   int       // tokens missing from the bucket
	run     int       // tokens taken since the bucket was last full
	penalty int       // how many times the interval was doubled
	since   time.Time // when the interval of the next token began
}

const (
	snapshotBurst    = 8
	snapshotInterval = time.Second
	snapshotMaxWait  = time.Minute
)

func (a *allowance) interval() time.Duration {
	return min(snapshotInterval<<a.penalty, snapshotMaxWait)
}

// refill adds the tokens of the intervals that have passed. A minute after the bucket was full, the
// interval is the first one again.
func (a *allowance) refill(now time.Time) {
	for a.spent > 0 && now.Sub(a.since) >= a.interval() {
		a.since = a.since.Add(a.interval())
		a.spent--
	}
	if a.spent == 0 {
		a.run = 0
		if now.Sub(a.since) >= snapshotMaxWait {
			a.penalty = 0
		}
	}
}

// wait returns how long to wait for a token.
func (a *allowance) wait(now time.Time) time.Duration {
	a.refill(now)
	if a.spent < snapshotBurst {
		return 0
	}
	return a.since.Add(a.interval()).Sub(now)
}

// spend takes a token, and reports whether this doubled the interval.
func (a *allowance) spend(now time.Time) bool {
	a.refill(now)
	if a.spent == 0 {
		a.since = now
	}
	a.spent++
	a.run++
	if a.run < 2*snapshotBurst || a.run%snapshotBurst != 0 {
		return false
	}
	a.penalty = min(a.penalty+1, 6)
	return true
}
