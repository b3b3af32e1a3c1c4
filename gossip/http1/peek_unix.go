//go:build unix

package http1

import "syscall"

const canPeek = true

// peek tells what has come on a connection, without taking it.
func peek(raw syscall.RawConn) arrival {
	found := itsEnd
	err := raw.Read(func(fd uintptr) bool {
		var one [1]byte
		switch n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT); {
		case n > 0:
			found = something
		case err == syscall.EAGAIN:
			found = nothing
		}
		return true
	})
	if err != nil {
		return itsEnd
	}
	return found
}
