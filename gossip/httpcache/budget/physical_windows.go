package budget

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// physical returns the memory of the machine, or of the container, in bytes; 0 = unknown.
func physical() uint64 {
	var status struct { // MEMORYSTATUSEX
		length, load uint32
		total        uint64
		rest         [6]uint64
	}
	status.length = uint32(unsafe.Sizeof(status))
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return 0
	}
	return status.total
}
