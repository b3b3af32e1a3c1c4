package health

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const limit = 10 * time.Second

// hanging returns the names of the parts that hang.
func hanging(w *Watchdog) (names string) {
	for _, p := range w.Parts() {
		if p.Hangs {
			names += p.Name + " "
		}
	}
	return names
}

// ticking calls Tick every second until the returned function is called.
func ticking(w *Watchdog) (stop func()) {
	ticker, stopped := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				w.Tick()
			case <-stopped:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(stopped) }
}

func TestIdleIsHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatchdog(limit)
		h := w.Watch("part")
		w.Probe("probed", func() {})
		defer ticking(w)()
		time.Sleep(time.Hour)
		if got := hanging(w); got != "" {
			t.Errorf("an idle hour: %s hang", got)
		}
		h.Begin()
		h.End()
		time.Sleep(time.Hour)
		if got := hanging(w); got != "" {
			t.Errorf("an idle hour after work: %s hang", got)
		}
		w.Close()
	})
}

func TestUnitThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatchdog(limit)
		h := w.Watch("part")
		time.Sleep(time.Hour)
		h.Begin()
		time.Sleep(limit)
		if got := hanging(w); got != "" {
			t.Errorf("after %v: %shangs", limit, got)
		}
		time.Sleep(time.Millisecond)
		if got := hanging(w); got != "part " {
			t.Errorf("after more than %v: %q hangs, want the part", limit, got)
		}
		h.End()
		if p := w.Parts()[0]; p.Hangs || p.Stalled != 0 {
			t.Errorf("after the end of the unit: %+v", p)
		}
	})
}

// Units that take long but end one after another are progress. When all of them stop, there is
// none.
func TestOverlappingUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatchdog(limit)
		h := w.Watch("part")
		for range 100 {
			h.Begin() // lasts for two turns
			time.Sleep(limit / 2)
			h.Begin()
			time.Sleep(limit / 4)
			h.End()
			if got := hanging(w); got != "" {
				t.Fatalf("%s hang though units end", got)
			}
			h.End()
		}
		h.Begin()
		h.Begin()
		time.Sleep(2 * limit)
		if got := hanging(w); got != "part " {
			t.Errorf("%q hangs, want the part", got)
		}
	})
}

// A probe that does not return is reported, also among other parts, and Close does not wait for it.
func TestProbeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatchdog(limit)
		gate := make(chan struct{}, 1)
		w.Probe("well", func() {})
		w.Probe("hung", func() { gate <- struct{}{}; <-gate })
		defer ticking(w)()
		time.Sleep(time.Minute)
		gate <- struct{}{} // as a lock that somebody keeps
		time.Sleep(limit + 2*time.Second)
		if got := hanging(w); got != "hung " {
			t.Errorf("%q hangs, want hung", got)
		}
		<-gate
		time.Sleep(2 * time.Second)
		if got := hanging(w); got != "" {
			t.Errorf("%q hangs after it went on", got)
		}
		gate <- struct{}{}
		time.Sleep(2 * time.Second)
		begun := time.Now()
		w.Close()
		if took := time.Since(begun); took != limit {
			t.Errorf("Close took %v beside a part that hangs, want %v", took, limit)
		}
		<-gate // so that the probe's goroutine ends
	})
}

// Many goroutines that begin and end units at once never appear to hang.
func TestConcurrentUnits(t *testing.T) {
	w := NewWatchdog(time.Minute)
	h := w.Watch("part")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10_000 {
				h.Begin()
				h.End()
			}
		})
	}
	stop := make(chan struct{})
	go func() { all.Wait(); close(stop) }()
	for {
		if p := w.Parts()[0]; p.Hangs {
			t.Fatalf("%+v", p)
		}
		select {
		case <-stop:
			if p := w.Parts()[0]; p.Stalled != 0 {
				t.Errorf("after all ended: %+v", p)
			}
			return
		default:
		}
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	h := &Heartbeat{start: time.Now()}
	for b.Loop() {
		h.Begin()
		h.End()
	}
}
