package engine

import "time"

// An alarm wakes a sleeper after some time, unless it is stopped before. Stopped alarms are
// reused: nearly every miss sets some, and few ever go off.
type alarm struct {
	clock *time.Timer
	of    sleeper
}

type sleeper interface{ wakeUp() }

// alarm sets an alarm.
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

// silence stops an alarm, which the caller must not use any more. It can be reused only if it was
// stopped in time: otherwise it is about to wake its sleeper.
func (c *Cache) silence(a *alarm) {
	if a.clock.Stop() {
		a.of = nil
		c.alarms.Put(a)
	}
}
