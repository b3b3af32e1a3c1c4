package diskstore

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns a file with these bytes that exists in memory only, until it is closed and
// the kernel has sent what it was given of it.
func memoryFile(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("body", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "body")
	if _, err := f.Write(b); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
