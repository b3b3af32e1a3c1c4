package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// machineShare is the part of the machine's memory that a peer may take, if neither a setting nor a
// container says less: others use the machine, too.
const machineShare = 0.75

// newBudget returns the budget of a process that may take limit bytes; 0 = what the machine allows. It
// makes Go's collector keep seven eighths of that, unless GOMEMLIMIT asks for less: the system counts
// the program's code and open files as well.
func newBudget(limit int64) *budget.Budget {
	if limit == 0 {
		limit = budget.Machine(machineShare)
	}
	if debug.SetMemoryLimit(-1) > limit { // this only reads it
		debug.SetMemoryLimit(limit - limit/8)
	}
	return budget.New(limit)
}

// collectAfter is the least that a peer allocates between two garbage collections. Go's default is as
// much as the live heap, with which a peer with few hot objects would collect twenty times a second
// under load.
const collectAfter = 32 << 20

// tuneHeap keeps the allocation between garbage collections at collectAfter or the size of the live
// heap, whichever is more, and returns memory to the system after a burst, until ctx ends.
// GOGC in the environment disables both. The memory limit still applies.
func tuneHeap(ctx context.Context, b *budget.Budget) {
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
	go giveBack(ctx, b.Held, func() {
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
	restSlack = 16 << 20        // bytes by which its memory must change before it is looked through
	restLong  = 8               // checks at rest after which a quarter of that suffices, once
)

// giveBack calls free, which collects and returns memory to the system, when there may be much to
// return: when the accounts hold less than they did, or when a peer at rest has more memory than after
// the last call. A change counts from restSlack, or a quarter of the memory, so that a peer collects at
// most twice for as much as that, and once more after a busy time. It can't compare with the live heap of the last
// collection, which may have been at the peak: the next one comes when as much again was allocated, or after two
// minutes.
func giveBack(ctx context.Context, held func() int64, free func()) {
	tick := time.NewTicker(restCheck)
	defer tick.Stop()
	m := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	read := func() (allocated, memory int64) {
		metrics.Read(m)
		return int64(m[0].Value.Uint64()), int64(m[1].Value.Uint64() - m[2].Value.Uint64())
	}
	before, least := read() // least: the memory after the last call, or what it has fallen to since
	most := held()          // that the accounts have held since the last call
	rested := 0             // checks in a row at rest
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		allocated, memory := read()
		holds := held()
		most = max(most, holds)
		slack := max(restSlack, least/4)
		atRest := allocated-before < restAlloc
		if rested++; !atRest {
			rested = 0
		}
		if rested == restLong {
			slack = restSlack / 4
		}
		if least = min(least, memory); most-holds > slack || atRest && memory > least+slack {
			free()
			allocated, least = read()
			most = holds
		}
		before = allocated
	}
}
