package health

import (
	"sync/atomic"
	"time"
)

const (
	latenessEvery = 100 * time.Millisecond
	latenessFades = 0.8 // of the worst is left after each
)

// Lateness measures by how much a process runs late because it gets too little processor time:
// it sets a timer again and again, which then rings late. Make one with [NewLateness]. It is
// safe for concurrent use.
type Lateness struct {
	start time.Time
	due   atomic.Int64 // nanoseconds since start: when the timer is to ring
	worst atomic.Int64 // lately, nanoseconds
}

// NewLateness returns one that measures while Run runs.
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

// Now returns by how much the process runs late: the worst of about the last second, or of
// this moment if that is worse. It is 0 before Run and after it.
func (l *Lateness) Now() time.Duration {
	due := time.Duration(l.due.Load())
	if due == 0 {
		return 0
	}
	return max(time.Duration(l.worst.Load()), time.Since(l.start)-due)
}
