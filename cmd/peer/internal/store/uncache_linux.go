package store

import "golang.org/x/sys/unix"

// Uncache lets the system drop the file's pages.
func (f systemFile) Uncache() { unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
