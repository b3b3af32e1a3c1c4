package diskstore

import (
	"os"

	"golang.org/x/sys/unix"
)

func (system) Free(name string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: name, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// Resident reports whether n bytes from off on are all in memory.
func (f systemFile) Resident(off, n int64) bool {
	page := int64(os.Getpagesize())
	from, to := off/page*page, (off+n+page-1)/page*page
	var st unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Off: uint64(from), Len: uint64(to - from)}, &st, 0)
	return err == nil && int64(st.Cache)*page >= to-from
}

// Changed returns the file's ctime in nanoseconds, which no program can set; 0 if it may be the ctime of the next
// change as well, since the kernel's clock of files has not advanced since.
func (f systemFile) Changed() int64 {
	var now unix.Timespec
	var st unix.Stat_t
	err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now)
	if err != nil || unix.Fstat(int(f.Fd()), &st) != nil || st.Ctim.Nano() >= now.Nano() {
		return 0
	}
	return st.Ctim.Nano()
}

// Descriptor returns the file that the kernel sends from.
func (f systemFile) Descriptor() *os.File { return f.File }

// noReadAhead turns off read-ahead.
func noReadAhead(f *os.File) { unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) }
