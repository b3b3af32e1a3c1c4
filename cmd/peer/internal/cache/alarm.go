package cache

import "time"

// An alarm wakes a sleeper after a while, unless it is stopped before. Those that were
// stopped are used again: nearly each miss sets some, and few ever ring.
type alarm struct {
	clock *time.Timer
	of    sleeper
}

type sleeper interface{ wakeUp() }

// alarm sets one.
func (c *Cache) alarm(of sleeper, after time.Duration) *alarm {
	a, again := c.alarms.Get().(*alarm)
	if !again {
		a = &alarm{of: of}
		a.clock = time.AfterFunc(after, func() { a.of.wakeUp() })
		return a
	}
	a.of = of
	a.clock.Reset(after)
	return a
}

// silence stops one, which is the caller's no longer. If it comes in time, nobody is being
// woken, or will be, so that it can be set for another.
func (c *Cache) silence(a *alarm) {
	if a.clock.Stop() {
		a.of = nil
		c.alarms.Put(a)
	}
}
