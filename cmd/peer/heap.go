package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// collectAfter is the least that a peer allocates between two garbage collections. Go's default is as
// much as the live heap, with which a peer with few hot objects would collect twenty times a second
// under load.
const collectAfter = 32 << 20

// tuneHeap keeps the allocation between garbage collections at collectAfter or the size of the live
// heap, whichever is more, and returns memory to the system while the peer is at rest, until ctx ends.
// GOGC in the environment disables both. GOMEMLIMIT still applies.
func tuneHeap(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := 100
	debug.SetGCPercent(percent)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var watch func()
	watch = func() {
		metrics.Read(live)
		want := int(min(100*collectAfter/max(live[0].Value.Uint64(), 1<<20), 6400))
		if want = max(want, 100); want < percent-percent/8 || want > percent+percent/8 {
			percent = want
			debug.SetGCPercent(percent)
		}
		afterCollection(watch)
	}
	afterCollection(watch)
	go giveBack(ctx, func() {
		runtime.GC() // a sync.Pool frees its objects after two collections
		debug.FreeOSMemory()
	})
}

// afterCollection calls f once, on a goroutine of the runtime, after the next garbage collection.
func afterCollection(f func()) {
	type canary struct{ _ [32]byte }
	runtime.SetFinalizer(&canary{}, func(*canary) { f() })
}

const (
	restCheck = 2 * time.Second // between two checks
	restAlloc = 2 << 20         // bytes; a peer that allocates less between two checks is at rest
	restSlack = 16 << 20        // bytes of unused memory that it keeps at least
)

// giveBack calls free, which collects and returns memory to the system, whenever a peer is at rest and
// holds more memory than it uses. Otherwise the garbage of a busy time would remain, since allocations
// trigger collections. A peer at rest collects at most twice for each restSlack, or quarter of its
// memory, that it allocates.
func giveBack(ctx context.Context, free func()) {
	tick := time.NewTicker(restCheck)
	defer tick.Stop()
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	allocated := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(heap)
		value := func(i int) uint64 { return heap[i].Value.Uint64() }
		if atRest := value(0)-allocated < restAlloc; atRest && value(2)+value(3) > value(1)+max(restSlack, value(1)/4) {
			free()
		}
		allocated = value(0)
	}
}
