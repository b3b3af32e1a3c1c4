//go:build unix

package conn

import (
	"math"

	"golang.org/x/sys/unix"
)

// descriptors returns how many files and sockets the process may have open.
func descriptors() int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return math.MaxInt32
	}
	return int(min(uint64(r.Cur), math.MaxInt32))
}
