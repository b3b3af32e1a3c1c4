package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// collectAfter is how much a peer allocates between two garbage collections at
// least. Go's own measure is what the program holds: a peer whose hot objects are
// still few would collect twenty times a second under load, for nothing.
const collectAfter = 64 << 20

// tuneHeap keeps the distance between garbage collections at collectAfter or
// what the heap holds, whichever is more. GOGC, where it is set, is stronger, and
// GOMEMLIMIT bounds the whole as ever.
func tuneHeap() {
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
}

// afterCollection calls f once, on a goroutine of the runtime, after the next
// garbage collection.
func afterCollection(f func()) {
	type canary struct{ _ [32]byte }
	runtime.SetFinalizer(&canary{}, func(*canary) { f() })
}
