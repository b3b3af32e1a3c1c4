//go:build !unix

package index

import "time"

// cpuTime is not known here; the benchmark then reports no cost.
func cpuTime() time.Duration { return 0 }
