package main

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var ballast [][]byte

// TestGivesBack checks that memory is returned to the system after a burst: when a peer is at rest, or
// when its accounts hold less, and each time once. Before, a collection at the peak made giveBack take
// what was live then for what is in use.
func TestGivesBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing else collects
	debug.FreeOSMemory()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int32
		var held atomic.Int64
		go giveBack(ctx, held.Load, func() { calls.Add(1); debug.FreeOSMemory() })
		rest := func(times int) { time.Sleep(time.Duration(times)*restCheck + time.Millisecond); synctest.Wait() }
		check := func(want int32, when string) {
			t.Helper()
			if n := calls.Load(); n != want {
				t.Errorf("%d calls %s, want %d", n, when, want)
			}
		}
		rest(3)
		check(0, "with nothing to give")
		for range 8 { // a busy time, which makes more garbage than is kept
			ballast = append(ballast, make([]byte, 4<<20))
			rest(1)
		}
		check(0, "while it allocates")
		runtime.GC() // at the peak
		ballast = nil
		rest(3)
		check(1, "at rest after a peak")
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased > 4<<20 {
			t.Errorf("%d bytes free and kept", m.HeapIdle-m.HeapReleased)
		}
		for range 8 { // memory that is in use while the peer rests ...
			ballast = append(ballast, make([]byte, 4<<20))
		}
		held.Store(32 << 20)
		rest(3)
		check(2, "at rest with more memory")
		ballast = nil // ... and is no more, which allocates nothing
		held.Store(0)
		rest(3)
		check(3, "after the accounts gave back")
		for range 2 { // little more memory than before
			ballast = append(ballast, make([]byte, 4<<20))
		}
		rest(3)
		check(3, "with little to give")
		rest(restLong)
		check(4, "at rest for long")
		rest(restLong)
		check(4, "at rest for longer")
		cancel()
		synctest.Wait()
	})
}

// TestBudgetReachesCollector checks that Go's collector gets a limit below that of the process, and
// that GOMEMLIMIT may be lower.
func TestBudgetReachesCollector(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	for _, test := range []struct{ environment, setting, limit, collector int64 }{
		{math.MaxInt64, 256 << 20, 256 << 20, 224 << 20},
		{100 << 20, 256 << 20, 256 << 20, 100 << 20},
		{100 << 20, 80 << 20, 80 << 20, 70 << 20},
		{100 << 20, 0, 100 << 20, 100 << 20},
	} {
		debug.SetMemoryLimit(test.environment)
		b := newBudget(test.setting)
		if got := debug.SetMemoryLimit(-1); b.Limit() != test.limit || got != test.collector {
			t.Errorf("newBudget(%d) with GOMEMLIMIT %d: %d, the collector %d; want %d, %d", test.setting, test.environment, b.Limit(), got, test.limit, test.collector)
		}
	}
}
