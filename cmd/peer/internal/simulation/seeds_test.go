package simulation

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	from   = flag.Uint64("from", 1, "the first seed")
	seeds  = flag.Uint64("seeds", 6, "how many seeds")
	span   = flag.Duration("for", 0, "go on with further seeds for so long")
	plan   = flag.String("schedule", "", "a `file` with a schedule, in place of seeds")
	full   = flag.Bool("full", false, "print the log of events, and that of the peers")
	shrink = flag.Int("shrink", 40, "how many runs to spend on a smaller schedule for a failure")
	only   = flag.String("only", "", "a `regexp` of the kinds of violations to look for")
	stuck  = flag.Duration("stuck", 2*time.Minute, "real time without a second of virtual time after which a run is given up")
)

// TestSeeds runs schedules drawn from seeds.
func TestSeeds(t *testing.T) {
	if *plan != "" {
		text, err := os.ReadFile(*plan)
		var s schedule
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		try(t, s)
		return
	}
	var mu sync.Mutex
	seen := map[string]int{}
	next, last := *from, *from+*seeds
	start := time.Now()
	sweep := func(end uint64) {
		var workers sync.WaitGroup
		for range option("parallel").(int) {
			workers.Go(func() {
				for {
					mu.Lock()
					seed := next
					over := seed >= end && (end < last || time.Since(start) >= *span) || t.Failed() && option("failfast").(bool)
					if !over {
						next++
					}
					mu.Unlock()
					if over {
						return
					}
					t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
						w := try(t, generate(seed))
						mu.Lock()
						defer mu.Unlock()
						for what := range w.seen {
							seen[what]++
						}
					})
				}
			})
		}
		workers.Wait()
	}
	sweep(min(*from+settled, last))
	began := heap()
	sweep(last)
	n := next - *from
	if n > settled && !t.Failed() {
		grown := heap() - began
		t.Logf("%d KiB of memory are left of each run", grown>>10/int64(n-settled))
		if grown > 8<<20+int64(n-settled)*keeps {
			t.Errorf("%d MiB of memory are left of %d runs", grown>>20, n-settled)
		}
	}
	if n >= 1000 && !t.Failed() { // the rarest happens in four of a thousand
		for _, what := range expected {
			if seen[what] == 0 {
				t.Errorf("it never happened: %s", what)
			}
		}
	}
	var names []string
	for what := range seen {
		names = append(names, what)
	}
	sort.Strings(names)
	for _, what := range names {
		t.Logf("%5d of %d runs: %s", seen[what], n, what)
	}
}

const (
	settled = 10       // runs after which there is everything that a process has once
	keeps   = 32 << 10 // bytes that the test keeps of a run: its name, its output
)

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // finalizers ran
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// option returns the value of a flag of go test.
func option(name string) any { return flag.Lookup("test." + name).Value.(flag.Getter).Get() }

// expected are events that occur in some runs of every sweep. Otherwise the sweep tests less
// than it should: a fault had no effect, or a kind of answer never occurred.
var expected = func() []string {
	list := []string{
		"Cache-Status hit", "Cache-Status detail=sibling", "Cache-Status collapsed", "Cache-Status stale-if-error", "Cache-Status ttl=-",
		"Cache-Status fwd=stale", "Cache-Status fwd=vary-miss", "Cache-Status fwd=partial", "a client leaves in the middle", "a client stops reading", "a write bars all peers",
		"a late header", "a slow body", "the origin answers nothing", "the origin answers 503", "the origin answers a range",
		"the origin lies about the length", "an answer of the origin ends by cut", "an answer of the origin ends by origin-reset",
		"an answer of the origin ends by stall", "counter evictions", "counter corrupt", "counter write errors", "counter reloaded",
		"counter revalidations", "counter sibling errors", "counter background", "fault stubborn",
		"a liar joins", "a liar answers", "a liar lies", "a client gets a lie", "a liar invalidates", "fault liar", "a page after a lie about it",
		"a walk", "an answer over the edge of a slice", "an answer that begins with a sibling's slice", "a page of a cold origin from a sibling", "a page of a cold origin from itself", "an answer on a small disk", "a client opens its window late",
		"a mutated request", "a request is refused for want of memory", "a slow client gives way for want of memory", "memory refused to requests", "memory refused to tags", "memory refused to gossip", "memory refused to objects",
		"memory refused to digests", "a connection without a request gives way", "fault memory", "fault disk-room", "fault noise", "fault saved-digests", "a damaged packet", "a damaged stream", "saved digests are damaged",
		"fault purge-tag", "fault purge-tag-everywhere", "an answer within a second after a purge", "an answer for one client", "an odd request",
		"the origin refuses an odd request", "a client names fields of its connection", "an answer after an odd request", "status 206", "status 304", "status 416", "status 502",
	}
	for _, k := range faultKinds {
		if !slices.Contains([]string{"stall", "cut", "origin-reset", "lie", "slow", "late"}, k.kind) {
			list = append(list, "fault "+k.kind)
		}
	}
	return list
}()

// try runs a schedule. If that fails, it fails the test with a smaller schedule that also fails.
func try(t *testing.T, s schedule) *world {
	w := guarded(t, s)
	if *full {
		t.Log(strings.Join(w.lines, "\n"))
	}
	if len(w.wrong) == 0 {
		return w
	}
	var text strings.Builder
	for _, v := range w.wrong[:min(len(w.wrong), 5)] {
		fmt.Fprintf(&text, "%s: %s\n", v.kind, v.text)
	}
	t.Errorf("seed %d: %d violations\n%sagain: go test ./cmd/peer/internal/simulation -run Seeds -from %d -seeds 1 -full",
		s.Seed, len(w.wrong), text.String(), s.Seed)
	if small := shrunk(t, s, w.wrong[0].kind); small != nil {
		t.Logf("a smaller schedule for it:\n%s", small)
	}
	return w
}

// guarded runs a schedule in a bubble of its own, and ends the process if the bubble's time
// stands still: then a goroutine runs for ever or is blocked.
func guarded(t *testing.T, s schedule) (w *world) {
	var seconds atomic.Int64
	over := make(chan struct{})
	defer close(over)
	go func() {
		for last := int64(-1); last != seconds.Load(); {
			last = seconds.Load()
			select {
			case <-time.After(*stuck):
			case <-over:
				return
			}
		}
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "seed %d: no end after %v without a second of its own\n%s\n", s.Seed, *stuck, buf[:runtime.Stack(buf, true)])
		os.Exit(3)
	}()
	logger := slog.New(slog.DiscardHandler)
	if *full {
		logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	kinds := regexp.MustCompile(*only)
	synctest.Test(t, func(t *testing.T) { w = run(t, s, logger, &seconds) })
	w.wrong = slices.DeleteFunc(w.wrong, func(v violation) bool { return !kinds.MatchString(v.kind) })
	return w
}
