package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var ballast []byte

// TestGivesBack checks that memory is returned to the system when a peer is at rest, not while it
// allocates, and only once.
func TestGivesBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing else collects
	debug.FreeOSMemory()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		go giveBack(ctx, func() { calls.Add(1); debug.FreeOSMemory() })
		rest := func(times int) { time.Sleep(time.Duration(times)*restCheck + time.Millisecond); synctest.Wait() }
		rest(3)
		if n := calls.Load(); n != 0 {
			t.Fatalf("%d calls, with nothing to give", n)
		}
		for range 6 { // a busy time, which makes more garbage than is kept
			ballast = make([]byte, 4<<20)
			rest(1)
		}
		if n := calls.Load(); n != 0 {
			t.Errorf("%d calls while it allocates", n)
		}
		ballast = nil
		rest(3)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls at rest, want 1", n)
		}
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased > 4<<20 {
			t.Errorf("%d bytes free and kept", m.HeapIdle-m.HeapReleased)
		}
		cancel()
		synctest.Wait()
	})
}
