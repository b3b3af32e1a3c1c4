//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package budget

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// physical returns the memory of the machine in bytes; 0 = unknown.
func physical() uint64 {
	name := "hw.physmem"
	switch runtime.GOOS {
	case "darwin":
		name = "hw.memsize"
	case "netbsd", "openbsd":
		name += "64"
	}
	b, err := unix.SysctlRaw(name)
	switch {
	case err != nil:
		return 0
	case len(b) == 4: // a long, on 32 bits
		return uint64(binary.NativeEndian.Uint32(b))
	case len(b) == 8:
		return binary.NativeEndian.Uint64(b)
	}
	return 0
}
