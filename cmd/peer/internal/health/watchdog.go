package health

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Watchdog checks the heartbeats of a program's parts. Make one with [NewWatchdog], and add all parts
// before the first call of Parts. It is safe for concurrent use.
type Watchdog struct {
	limit   time.Duration
	stopped chan struct{}
	ending  sync.Mutex // held while a trial begins, so that none does after Close
	running sync.WaitGroup
	parts   []part
	probes  []*probe
}

type probe struct {
	beat  *Heartbeat
	try   func()
	under atomic.Bool
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

// Probe adds a part that hangs if try does not return. try is called at each [Watchdog.Tick] until Close, unless it still
// runs.
func (w *Watchdog) Probe(name string, try func()) {
	w.probes = append(w.probes, &probe{beat: w.Watch(name), try: try})
}

// Tick begins the next trial of all probes. Call it about once a second. One goroutine tries them in turn, which wakes a
// process at rest less often than one for each. Where a probe has not returned by the next Tick, that has another try
// those that remain.
func (w *Watchdog) Tick() {
	w.ending.Lock()
	defer w.ending.Unlock()
	select {
	case <-w.stopped:
		return
	default:
	}
	w.running.Go(func() {
		for _, p := range w.probes {
			if p.under.Swap(true) {
				continue
			}
			p.beat.Begin()
			p.try()
			p.beat.End()
			p.under.Store(false)
		}
	})
}

// A Part is the state of one part.
type Part struct {
	Name    string  `json:"name"`
	Hangs   bool    `json:"hangs"`           // no progress for too long, though there was work
	Stalled float64 `json:"stalled_seconds"` // for how long; 0 = there is no work
}

// Parts returns the states of all parts in the order in which they were added. It takes no locks of
// theirs, so that it never blocks.
func (w *Watchdog) Parts() []Part {
	out := make([]Part, len(w.parts))
	for i, p := range w.parts {
		stalled := p.beat.Stalled()
		out[i] = Part{Name: p.name, Stalled: stalled.Seconds(), Hangs: stalled > w.limit}
	}
	return out
}

// Close ends the probes and waits until they have returned, but no longer than the limit: the
// goroutine of a probe that hangs is left behind. Call Close once.
func (w *Watchdog) Close() {
	w.ending.Lock()
	close(w.stopped)
	w.ending.Unlock()
	done := make(chan struct{})
	go func() { w.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(w.limit):
	}
}
