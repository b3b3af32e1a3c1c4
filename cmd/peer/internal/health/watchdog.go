package health

import (
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
)

// A Watchdog checks the heartbeats of a program's parts. Make one with [NewWatchdog], and add all parts
// before the first call of Parts. It is safe for concurrent use.
type Watchdog struct {
	limit   time.Duration
	stopped chan struct{}
	probes  sync.WaitGroup
	parts   []part
	again   []chan struct{} // one for each probe
}

type part struct {
	name string
	beat *Heartbeat
}

// NewWatchdog returns a watchdog. A part hangs if it has work and makes no progress for longer than
// limit, which must be positive.
func NewWatchdog(limit time.Duration) *Watchdog {
	return &Watchdog{limit: limit, stopped: make(chan struct{})}
}

// Watch adds a part, which marks its work on the returned heartbeat.
func (w *Watchdog) Watch(name string) *Heartbeat {
	h := &Heartbeat{start: time.Now()}
	w.parts = append(w.parts, part{name, h})
	return h
}

// Probe adds a part that hangs if try does not return. try is called now and, until Close, at each
// [Watchdog.Tick] unless it still runs.
func (w *Watchdog) Probe(name string, try func()) {
	h, again := w.Watch(name), make(chan struct{}, 1)
	w.again = append(w.again, again)
	w.probes.Go(func() {
		for {
			h.Begin()
			try()
			if planted.Fault != "probe-never-ends" {
				h.End()
			}
			select {
			case <-again:
			case <-w.stopped:
				return
			}
		}
	})
}

// Tick begins the next trial of all probes. Call it about once a second. One timer for all wakes a process
// at rest less often than one each.
func (w *Watchdog) Tick() {
	for _, again := range w.again {
		select {
		case again <- struct{}{}:
		default:
		}
	}
}

// A Part is the state of one part.
type Part struct {
	Name  string
	Hangs bool
	// Stalled is for how long the part has had work and made no progress; 0 = it has no work.
	Stalled time.Duration
}

// Parts returns the states of all parts in the order in which they were added. It takes no locks of
// theirs, so that it never blocks.
func (w *Watchdog) Parts() []Part {
	out := make([]Part, len(w.parts))
	for i, p := range w.parts {
		stalled := p.beat.Stalled()
		out[i] = Part{Name: p.name, Stalled: stalled, Hangs: stalled > w.limit}
	}
	return out
}

// Close ends the probes and waits until they have returned, but no longer than the limit: the
// goroutine of a probe that hangs is left behind. Call Close once.
func (w *Watchdog) Close() {
	close(w.stopped)
	done := make(chan struct{})
	go func() { w.probes.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(w.limit):
	}
}
