package digest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestReaderMeetsRetiredCounters: a reader has loaded the pointer to the counters when a
// rebuild replaces them. It must use the new ones, and must not deny a key that these have. The
// test holds a lock for which the reader waits, so it knows where the reader is.
func TestReaderMeetsRetiredCounters(t *testing.T) {
	for _, g := range []Geometry{{Bits: 1 << 30, Hashes: 1}, {Bits: 40_000, Hashes: 3}, {Bits: 1 << 33, Hashes: 2}} {
		const k = Key(0x0123456789abcdef)
		operations := map[string]func(*CountingFilter) bool{
			"MayContain": func(c *CountingFilter) bool { return c.MayContain(k) },
			"Remove":     func(c *CountingFilter) bool { return c.Remove(k) },
		}
		for name, operation := range operations {
			c := counting(t, g)
			fresh := counting(t, g, k).counters.Load()
			old := c.counters.Load()

			old.lockAll()
			answer := make(chan bool)
			go func() { answer <- operation(c) }()
			waitForLock(t, name)
			c.counters.Store(fresh) // what Rebuild does last
			old.retired = true
			old.unlockAll()
			if got := <-answer; !got {
				t.Errorf("%v: %s = %v of a key that the new counters have", g, name, got)
			}
		}
	}
}

// waitForLock returns when some goroutine waits for a mutex in a method of this
// name. If none does for a minute, it shows what all of them do.
func waitForLock(t *testing.T, method string) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for began := time.Now(); ; {
		all := string(buf[:runtime.Stack(buf, true)])
		if time.Since(began) > time.Minute {
			t.Fatalf("no goroutine waits for a lock in %s:\n%s", method, all)
		}
		for stack := range strings.SplitSeq(all, "\n\n") {
			if strings.Contains(stack, "Mutex.Lock") && strings.Contains(stack, "CountingFilter)."+method+"(") {
				return
			}
		}
		runtime.Gosched()
	}
}
