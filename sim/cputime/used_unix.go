//go:build unix

// Package cputime measures processor time for benchmarks. On a shared machine, the processor
// time of a process does not grow while other processes run.
package cputime

import (
	"syscall"
	"time"
)

// Used returns the processor time that all threads of the process have used. It is safe for
// concurrent use.
func Used() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
