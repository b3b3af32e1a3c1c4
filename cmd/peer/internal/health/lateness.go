package health

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	latenessEvery = 100 * time.Millisecond // between two measurements while questions come twice as slowly at most,
	latenessRest  = time.Second            // otherwise, and for how long after those
	latenessFades = 0.8                    // share of the worst that remains after latenessEvery
)

// Lateness measures how late a process runs because it gets too little processor time, by the delay
// of a repeated timer. Make one with [NewLateness]. It is safe for concurrent use.
type Lateness struct {
	start time.Time
	due   atomic.Int64 // nanoseconds since start: when the timer should fire
	worst atomic.Int64 // nanoseconds: the worst recent delay
	asked atomic.Int64 // questions since the last measurement
}

// NewLateness returns a Lateness that measures while Run runs.
func NewLateness() *Lateness { return &Lateness{start: time.Now()} }

// Run measures until stop is closed: often while Now is called often, as it is for many requests to siblings,
// and otherwise once a second, since each measurement wakes the process.
func (l *Lateness) Run(stop <-chan struct{}) {
	pause := latenessRest
	for last, asked := time.Since(l.start), time.Duration(0); ; {
		due := last + pause - last%pause // see Until
		l.due.Store(int64(due))
		select {
		case <-time.After(due - time.Since(l.start)):
		case <-stop:
			l.due.Store(0)
			return
		}
		now := time.Since(l.start)
		faded := math.Pow(latenessFades, float64(now-last)/float64(latenessEvery)) * float64(l.worst.Load())
		l.worst.Store(max(int64(now-due), int64(faded)))
		if 2*latenessEvery*time.Duration(l.asked.Swap(0)) > now-last {
			asked, pause = now, latenessEvery
		} else if now-asked >= latenessRest {
			pause = latenessRest
		}
		last = now
	}
}

// Until returns how long it is until the next multiple of a pause since l was made: timers that are set by it go off
// together, and with those of Run. Each that does not wakes a process at rest.
func (l *Lateness) Until(pause time.Duration) time.Duration { return pause - time.Since(l.start)%pause }

// Now returns how late the process runs: the worst delay in about the last second, or the current one
// if that is worse. It returns 0 before and after Run.
func (l *Lateness) Now() time.Duration {
	due := time.Duration(l.due.Load())
	if due == 0 {
		return 0
	}
	l.asked.Add(1)
	return max(time.Duration(l.worst.Load()), time.Since(l.start)-due)
}
