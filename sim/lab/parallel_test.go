package lab

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: what takes longer than two seconds says each second how far it is.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs strings.Builder
		job := &Job{Stderr: &errs, start: time.Now(), name: "x"}
		if err := job.Each(1, "all", func(int) error { time.Sleep(3500 * time.Millisecond); return nil }); err != nil {
			t.Fatal(err)
		}
		if want := "x:    2 s  all: 0 of 1\nx:    3 s  all: 0 of 1\n"; errs.String() != want {
			t.Errorf("it says %q, want %q", errs.String(), want)
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
