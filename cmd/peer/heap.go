package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// collectAfter is how much a peer allocates between two garbage collections at
// least. Go's own measure is what the program holds: a peer whose hot objects are
// still few would collect twenty times a second under load, for nothing.
const collectAfter = 32 << 20

// tuneHeap keeps the distance between garbage collections at collectAfter or
// what the heap holds, whichever is more, and gives memory back at rest until ctx ends. GOGC,
// where it is set, is stronger, and GOMEMLIMIT bounds the whole as ever.
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
		runtime.GC() // pools let go of what was in nobody's use for two collections
		debug.FreeOSMemory()
	})
}

// afterCollection calls f once, on a goroutine of the runtime, after the next
// garbage collection.
func afterCollection(f func()) {
	type canary struct{ _ [32]byte }
	runtime.SetFinalizer(&canary{}, func(*canary) { f() })
}

const (
	restLook  = time.Second / 2
	restAlloc = 2 << 20  // bytes that a peer at rest allocates between two looks, at most
	restSlack = 16 << 20 // bytes of memory in no use that it keeps, at least
)

// giveBack calls free, which collects and gives the system what is free, whenever a peer is
// at rest that holds more memory than it uses: what it allocated in a busy time it would keep
// until the next one, since it collects by what it allocates. That costs a peer at rest
// at most two collections for restSlack, or a quarter of what it uses, allocated.
func giveBack(ctx context.Context, free func()) {
	look := time.NewTicker(restLook)
	defer look.Stop()
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	allocated := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		metrics.Read(heap)
		value := func(i int) uint64 { return heap[i].Value.Uint64() }
		if atRest := value(0)-allocated < restAlloc; atRest && value(2)+value(3) > value(1)+max(restSlack, value(1)/4) {
			free()
		}
		allocated = value(0)
	}
}
