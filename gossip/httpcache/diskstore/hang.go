package diskstore

import (
	"errors"
	"sync/atomic"
	"time"
)

// patience is how long the disk may do nothing of what it was asked to do. Then nothing else is asked of it until it goes
// on: a network file system without its server, one that is frozen, or a drive that tries again and again would
// otherwise take each client's answer with it.
const patience = 2 * time.Second

var errHangs = errors.New("the disk hangs")

// A pace follows what the disk is asked to do. Several units may be under way, in several goroutines.
type pace struct {
	start time.Time    // moved counts from here, by the monotonic clock
	units atomic.Int64 // under way
	moved atomic.Int64 // nanoseconds: when a unit last ended, or began with no other under way
}

// begin begins a unit, which end ends, or returns errHangs.
func (p *pace) begin() error {
	now := int64(time.Since(p.start))
	if p.units.Add(1) == 1 {
		p.moved.Store(now)
	} else if now-p.moved.Load() > int64(patience) {
		p.units.Add(-1)
		return errHangs
	}
	return nil
}

func (p *pace) end() {
	p.moved.Store(int64(time.Since(p.start)))
	p.units.Add(-1)
}
