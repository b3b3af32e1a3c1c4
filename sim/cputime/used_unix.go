//go:build unix

// Package cputime is the clock of benchmarks on shared machines: what a process has used
// of processors, which does not grow while others have them.
package cputime

import (
	"syscall"
	"time"
)

// Used returns what the process has used so far, all threads together. It is safe for
// concurrent use.
func Used() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
