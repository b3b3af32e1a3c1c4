package engine

import "time"

// A moment is a point in time by two clocks. The wall clock, to which dates refer, may be wrong and
// be corrected. The steady clock only goes forward, and means nothing in another process.
type moment struct {
	wall   time.Time
	clock  int64         // identifies the steady clock of a Cache; 0 = none
	steady time.Duration // since the Cache was opened
}

func (c *Cache) now() moment {
	t := time.Now()
	m := moment{wall: t, clock: c.clock, steady: t.Sub(c.opened)}
	if c.cfg.Now != nil {
		m.wall = c.cfg.Now()
	}
	return m
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
