package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A part that hangs while a peer stops does not keep the process alive.
func TestStopOfAPeerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("requests under way were cut off")
		if err := within(time.Minute, func() error { time.Sleep(59 * time.Second); return failure }); err != failure {
			t.Errorf("within() = %v, want the error of stopping", err)
		}
		hung := make(chan struct{})
		begun := time.Now()
		err := within(time.Minute, func() error { <-hung; return nil })
		if took := time.Since(begun); took != time.Minute || err == nil || !strings.Contains(err.Error(), "hangs") {
			t.Errorf("within() = %v after %v", err, took)
		}
		close(hung)
	})
}
