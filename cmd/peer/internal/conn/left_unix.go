//go:build unix

package conn

import "golang.org/x/sys/unix"

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
