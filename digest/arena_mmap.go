//go:build linux || darwin || freebsd

package digest

import (
	"os"
	"syscall"
)

const canMap = true

func mapFile(file *os.File, offset int64, n int) ([]byte, error) {
	return syscall.Mmap(int(file.Fd()), offset, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmapFile(b []byte) error { return syscall.Munmap(b) }
