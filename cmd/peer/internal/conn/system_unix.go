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

// ended reports whether the other end sends nothing more, and all that it has sent was read.
func (c *Conn) ended() (is bool) {
	if c.raw != nil {
		c.raw.Control(func(fd uintptr) {
			var one [1]byte
			n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			is = n <= 0 && err != unix.EAGAIN && err != unix.EINTR
		})
	}
	return is
}
