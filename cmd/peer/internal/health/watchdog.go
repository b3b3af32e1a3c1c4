package health

import (
	"sync"
	"time"
)

// probePause is the time from the end of a probe to the beginning of the next.
const probePause = time.Second

// A Watchdog looks at the heartbeats of a program's parts. Make one with
// [NewWatchdog]; add all parts before it is asked. It is safe for concurrent use.
type Watchdog struct {
	limit   time.Duration
	stopped chan struct{}
	probes  sync.WaitGroup
	parts   []part
}

type part struct {
	name string
	beat *Heartbeat
}

// NewWatchdog returns a watchdog with the limit, which must be positive, after which a part
// that has work and makes no progress hangs.
func NewWatchdog(limit time.Duration) *Watchdog {
	return &Watchdog{limit: limit, stopped: make(chan struct{})}
}

// Watch adds a part, which marks its work on the returned heartbeat.
func (w *Watchdog) Watch(name string) *Heartbeat {
	h := newHeartbeat()
	w.parts = append(w.parts, part{name, h})
	return h
}

// Probe adds a part that hangs if try does not return. try is called again and again, a second
// after it returned, until Close.
func (w *Watchdog) Probe(name string, try func()) {
	h := w.Watch(name)
	w.probes.Go(func() {
		for {
			h.Begin()
			try()
			h.End()
			select {
			case <-time.After(probePause):
			case <-w.stopped:
				return
			}
		}
	})
}

// A Part is the state of one part.
type Part struct {
	Name  string
	Hangs bool
	// Stalled is for how long the part has made no progress though there was work;
	// 0 = there is none.
	Stalled time.Duration
}

// Parts returns the states of all parts, in the order in which they were added. It takes
// none of their locks, and so never waits.
func (w *Watchdog) Parts() []Part {
	out := make([]Part, len(w.parts))
	for i, p := range w.parts {
		stalled := p.beat.Stalled()
		out[i] = Part{Name: p.name, Stalled: stalled, Hangs: stalled > w.limit}
	}
	return out
}

// Close ends the probing and waits for the probes under way, but no longer
// than the limit: a probe that hangs stays behind. Call it once.
func (w *Watchdog) Close() {
	close(w.stopped)
	done := make(chan struct{})
	go func() { w.probes.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(w.limit):
	}
}
