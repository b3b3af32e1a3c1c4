package store

import "golang.org/x/sys/unix"

// Cached reports whether the system has pages of the file in memory; false if it
// doesn't say.
func (f systemFile) Cached() bool {
	var st unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &st, 0) // the whole file
	return err == nil && st.Cache > 0
}

// Uncache lets the system drop the file's pages.
func (f systemFile) Uncache() { unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
