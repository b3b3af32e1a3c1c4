package budget

import (
	"math"
	"os"
	"runtime/debug"
)

// Machine returns the memory in bytes that this process may take: the least of what the machine has,
// the limits of the containers that the process is in, and GOMEMLIMIT. It is [math.MaxInt64] where the
// system does not say. share, from 0 to 1, is the part of the machine's own memory that counts:
// others use it, too.
func Machine(share float64) int64 { return machine("/", share) }

func machine(root string, share float64) int64 {
	limit := debug.SetMemoryLimit(-1) // only reads it
	if own := physical(); own > 0 {
		limit = min(limit, int64(min(share*float64(own), math.MaxInt64/2)))
	}
	return min(limit, container(os.DirFS(root)))
}
