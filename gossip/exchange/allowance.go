package exchange

import "time"

// An allowance is a token bucket: some tokens at once, then one after each interval. If it is
// exhausted again and again, the interval doubles each time.
type allowance struct {
	spent   int // of the burst
	run     int // spent since all of it was last there
	penalty int // doublings of the interval
	since   time.Time
}

const (
	snapshotBurst    = 8
	snapshotInterval = time.Second
	snapshotMaxWait  = time.Minute
)

func (a *allowance) interval() time.Duration {
	return min(snapshotInterval<<a.penalty, snapshotMaxWait)
}

// refill adds the tokens earned since. After a quiet minute the interval is the first again.
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

// wait returns how long until one may be spent.
func (a *allowance) wait(now time.Time) time.Duration {
	a.refill(now)
	if a.spent < snapshotBurst {
		return 0
	}
	return a.since.Add(a.interval()).Sub(now)
}

// spend takes one, and reports whether the interval was doubled for it.
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
