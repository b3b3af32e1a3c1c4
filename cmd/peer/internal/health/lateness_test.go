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

// TestLatenessWakesWhenAsked: it measures ten times a second while somebody asks often, and else once.
func TestLatenessWakesWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop := NewLateness(), make(chan struct{})
		go l.Run(stop)
		defer close(stop)
		count := func(every int) (n int) { // measurements in ten seconds with a question in so many hundredths of one; 0 = none
			for last, i := l.due.Load(), 0; i < 1000; i++ {
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
				if due := l.due.Load(); due != last {
					last = due
					n++
				}
				if every > 0 && i%every == 0 {
					l.Now()
				}
			}
			return n
		}
		for _, want := range []struct {
			every       int
			least, most int
		}{{0, 9, 11}, {25, 9, 11}, {1, 85, 101}, {15, 85, 101}, {0, 9, 21}} { // what was asked last counts for a second
			if n := count(want.every); n < want.least || n > want.most {
				t.Errorf("a question every %d0 ms: %d measurements in 10 s, want %d to %d", want.every, n, want.least, want.most)
			}
		}
	})
}

// TestUntil checks that timers which began at different moments go off together.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, at := NewLateness(), make(map[time.Time]int)
		for i := range 30 {
			time.Sleep(time.Second / 30)
			pause := time.Second * time.Duration(1+i%2)
			wait := l.Until(pause)
			if at[time.Now().Add(wait)]++; wait <= 0 || wait > pause {
				t.Errorf("after %v, Until(%v) = %v", time.Since(l.start), pause, wait)
			}
		}
		if len(at) != 2 {
			t.Errorf("timers go off at %d moments, want 2: %v", len(at), at)
		}
	})
}
