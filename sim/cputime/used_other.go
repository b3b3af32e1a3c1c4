//go:build !unix

// Package cputime measures processor time for benchmarks. On this system it measures the time
// that has passed instead, since the processor time of a process is not known.
package cputime

import "time"

var started = time.Now()

// Used returns the time since the process started. It is safe for concurrent use.
func Used() time.Duration { return time.Since(started) }
