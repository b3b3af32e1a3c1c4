//go:build !unix

// Package cputime is the clock of benchmarks. What a process has used of processors is not
// known here; the time that has passed stands for it.
package cputime

import "time"

var started = time.Now()

// Used returns the time since the process started. It is safe for concurrent use.
func Used() time.Duration { return time.Since(started) }
