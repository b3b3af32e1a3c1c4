package lab

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: the remaining time is that of the current part, whatever the earlier parts
// took.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs strings.Builder
		job := &Job{Stderr: &errs, start: time.Now(), name: "x"}
		for part := range 2 {
			for i := range 4 {
				job.Progress(i, 4, "part %d, %d", part, i)
				time.Sleep(time.Duration(1+9*part) * time.Second)
			}
		}
		if err := job.Each(1, "all", func(int) error { time.Sleep(2500 * time.Millisecond); return nil }); err != nil {
			t.Fatal(err)
		}
		var left []string
		for line := range strings.Lines(errs.String()) {
			left = append(left, strings.TrimSpace(strings.TrimPrefix(line, "x: ")))
		}
		if want := []string{
			"2 s, about 2 s left  part 0, 2", "3 s, about 1 s left  part 0, 3",
			"4 s  part 1, 0", "14 s, about 30 s left  part 1, 1", "24 s, about 20 s left  part 1, 2", "34 s, about 10 s left  part 1, 3",
			"45 s  all: 0 of 1", "46 s  all: 0 of 1",
		}; !slices.Equal(left, want) {
			t.Errorf("it says %q, want %q", left, want)
		}
	})
}

// TestEachFails: after an error no other call begins, and the error is returned.
func TestEachFails(t *testing.T) {
	var calls atomic.Int64
	bad := errors.New("bad")
	if err := Quiet(1).Each(1000, "tried", func(i int) error { calls.Add(1); return bad }); err != bad || calls.Load() > int64(runtime.GOMAXPROCS(0)) {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}
