package diskstore

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// FS is the file system under a store. Tests can give one that fails. Names are paths, and errors are like those of
// package os. It must be safe for concurrent use. The store never syncs.
type FS interface {
	Lock(name string) (io.Closer, error)   // locks a file, and makes it if it is missing; ErrLocked if another process has locked it
	Open(name string) (File, error)        // for reading, as a disk that has become read-only allows; it must exist
	Edit(name string) (File, error)        // for reading and writing; it must exist
	Create(name string) (File, error)      // for reading and writing; it must not exist
	Remove(name string) error              // a file
	MkdirAll(name string) error            // with its parents; it may exist
	ReadDir(name string) ([]string, error) // the names in a directory, in any order
	Free(name string) (int64, error)       // bytes that the file system of a directory has left; errors.ErrUnsupported = unknown
}

// A File is an open file of an [FS]. It is safe for concurrent use.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
}

// system is the operating system's file system.
type system struct{}

type systemFile struct{ *os.File }

func (system) Lock(name string) (io.Closer, error) { return lock(name) }
func (system) Remove(name string) error            { return os.Remove(name) }
func (system) MkdirAll(name string) error          { return os.MkdirAll(name, 0o700) }
func (system) Open(name string) (File, error)      { return opened(os.Open(name)) }
func (system) Edit(name string) (File, error)      { return opened(os.OpenFile(name, os.O_RDWR, 0)) }

func (system) Create(name string) (File, error) {
	return opened(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

func (system) ReadDir(name string) ([]string, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// opened wraps a file and turns off its read-ahead.
func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	noReadAhead(f)
	return systemFile{f}, nil
}

func (f systemFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// isFull reports whether a write failed because the disk, or a quota, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
