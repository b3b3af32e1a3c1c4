package health

import (
	"testing"
	"testing/synctest"
	"time"
)

// Timers are never late in virtual time, so that the effect of a late timer is computed here.
func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLateness()
		if got := l.Now(); got != 0 {
			t.Errorf("before it runs: %v", got)
		}
		stop := make(chan struct{})
		go l.Run(stop)
		time.Sleep(10*time.Second + time.Millisecond)
		if got := l.Now(); got != 0 {
			t.Errorf("on an idle machine: %v", got)
		}
		l.worst.Store(int64(time.Second)) // as after a second without a processor
		time.Sleep(latenessEvery / 2)
		if got := l.Now(); got < 790*time.Millisecond {
			t.Errorf("right after it was late: %v", got)
		}
		time.Sleep(3 * time.Second)
		if got := l.Now(); got > 5*time.Millisecond {
			t.Errorf("three seconds later: %v", got)
		}
		l.due.Store(int64(time.Since(l.start) - time.Second)) // the timer should have rung a second ago
		if got := l.Now(); got < 900*time.Millisecond {
			t.Errorf("while it is late: %v", got)
		}
		close(stop)
		synctest.Wait()
		if got := l.Now(); got != 0 {
			t.Errorf("after the end: %v", got)
		}
	})
}
