package health

import (
	"sync/atomic"
	"time"
)

// A Heartbeat follows the work of one part. Several units may be under way at once, in several
// goroutines. The nil *Heartbeat does nothing.
type Heartbeat struct {
	start time.Time    // moved counts from here, by the monotonic clock
	units atomic.Int64 // under way
	moved atomic.Int64 // nanoseconds: when a unit last ended, or began with no other under way
}

// Begin marks the beginning of a unit of work; [Heartbeat.End] must follow.
func (h *Heartbeat) Begin() {
	if h == nil {
		return
	}
	if h.units.Load() == 0 {
		// before units changes, so that Stalled never sees the unit with an old time
		h.moved.Store(int64(time.Since(h.start)))
	}
	h.units.Add(1)
}

// End marks the end of a unit of work, whether it succeeded or not.
func (h *Heartbeat) End() {
	if h == nil {
		return
	}
	h.moved.Store(int64(time.Since(h.start)))
	h.units.Add(-1)
}

// Stalled returns for how long no unit has ended although one is under way; 0 = none is under way.
func (h *Heartbeat) Stalled() time.Duration {
	// In this order, a unit that begins in between is not taken for a stalled one.
	units, moved := h.units.Load(), h.moved.Load()
	if units == 0 {
		return 0
	}
	return time.Since(h.start) - time.Duration(moved)
}
