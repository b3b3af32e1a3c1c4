package health

import (
	"sync/atomic"
	"time"
)

const (
	latenessEvery = 100 * time.Millisecond // between two measurements
	latenessFades = 0.8                    // share of the worst that remains after each
)

// Lateness measures how late a process runs because it gets too little processor time, by the delay
// of a repeated timer. Make one with [NewLateness]. It is safe for concurrent use.
type Lateness struct {
	start time.Time
	due   atomic.Int64 // nanoseconds since start: when the timer should fire
	worst atomic.Int64 // nanoseconds: the worst recent delay
}

// NewLateness returns a Lateness that measures while Run runs.
func NewLateness() *Lateness { return &Lateness{start: time.Now()} }

// Run measures until stop is closed.
func (l *Lateness) Run(stop <-chan struct{}) {
	for {
		due := time.Since(l.start) + latenessEvery
		l.due.Store(int64(due))
		select {
		case <-time.After(latenessEvery):
		case <-stop:
			l.due.Store(0)
			return
		}
		late := time.Since(l.start) - due
		l.worst.Store(max(int64(late), int64(latenessFades*float64(l.worst.Load()))))
	}
}

// Now returns how late the process runs: the worst delay in about the last second, or the current one
// if that is worse. It returns 0 before and after Run.
func (l *Lateness) Now() time.Duration {
	due := time.Duration(l.due.Load())
	if due == 0 {
		return 0
	}
	return max(time.Duration(l.worst.Load()), time.Since(l.start)-due)
}
