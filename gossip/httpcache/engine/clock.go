package engine

import (
	"sync/atomic"
	"time"
)

// A moment is a point in time by two clocks. The wall clock, to which dates refer, may be wrong and
// be corrected. The steady clock only goes forward, and means nothing in another process.
type moment struct {
	wall   time.Time
	clock  int64         // identifies the steady clock of a Cache; 0 = none
	steady time.Duration // since the Cache was opened
}

func (c *Cache) now() moment {
	t := time.Now()
	steady := t.Sub(c.opened)
	m := moment{wall: t, clock: c.clock, steady: steady + c.slept.by(t.UnixNano()-c.opened.UnixNano()-int64(steady), suspended)}
	if c.cfg.Now != nil {
		m.wall = c.cfg.Now()
	}
	return m
}

// tick is now for what must have an order, fetches and invalidations: it is later than every other tick.
func (c *Cache) tick() moment {
	m := c.now()
	for { // ends: another tick has come whenever a round fails
		last := c.ticked.Load()
		if next := max(last+1, int64(m.steady)); c.ticked.CompareAndSwap(last, next) {
			m.steady = time.Duration(next)
			return m
		}
	}
}

// A sleep is for how long the machine was suspended while the Cache was open. Go's clock stands still meanwhile, and answers
// grow old. The system is asked when the wall clock has jumped, as it does then, since that takes longer than a clock does.
type sleep struct {
	before       int64 // it was opened
	ahead, total atomic.Int64
}

// by returns the sum until now. ahead is how far the wall clock has gone ahead of Go's, in nanoseconds.
func (s *sleep) by(ahead int64, suspended func() time.Duration) time.Duration {
	if d := ahead - s.ahead.Load(); d > int64(time.Second) || d < -int64(time.Second) {
		s.total.Store(max(s.total.Load(), int64(suspended())-s.before))
		s.ahead.Store(ahead)
	}
	return time.Duration(s.total.Load())
}

// ago returns the moment that was d before m.
func (m moment) ago(d time.Duration) moment {
	m.wall, m.steady = m.wall.Add(-d), m.steady-d
	return m
}

// since returns how long m is after then. That is unknown if then was noted by
// another process whose wall clock was ahead of ours.
func (m moment) since(then moment) (d time.Duration, known bool) {
	if m.clock == then.clock && m.clock != 0 {
		return max(0, m.steady-then.steady), true
	}
	d = m.wall.Sub(then.wall)
	return d, d >= 0
}
