// Package disktest has a disk in memory for tests of package store and its users. The disk
// fails when told to, and a power cut loses what was not written back.
//
// Start from [New], use the disk as Options.FS, and inject failures by [Disk.Inject].
// [Disk.Killed] and [Disk.PowerCut] return the disk as it is after a restart of the process
// or of the machine. The original stays as it is for those who still use it.
package disktest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

// An Op is an operation of a disk.
type Op string

// The operations, by the methods of store.FS and store.File.
const (
	Lock     Op = "lock"
	Open     Op = "open"
	Create   Op = "create"
	Edit     Op = "edit"
	Remove   Op = "remove"
	ReadDir  Op = "readdir"
	MkdirAll Op = "mkdir"
	Read     Op = "read"
	Write    Op = "write"
	Truncate Op = "truncate"
	Size     Op = "size"
)

// A Fault decides which operations fail. It is called for every operation with the name of the
// file: after a read, with the bytes read, which it may change; before a write, with the bytes to
// be written. If it returns an error, the operation fails with it, a write after the first n bytes.
// It is called with the disk locked.
type Fault func(op Op, name string, b []byte) (n int, err error)

// A Disk is safe for concurrent use.
type Disk struct {
	mu      sync.Mutex
	fault   Fault
	dirs    map[string]bool // a power cut does not undo their changes
	names   map[string]*content
	safe    map[string]*content // the names that survive a power cut
	changes []func(names map[string]*content)
	locked  map[string]bool
	limit   int64 // bytes of all files; 0 = no limit
}

// content is the content of a file.
type content struct {
	now  []byte
	safe []byte // what survives a power cut for certain
}

// New returns an empty disk.
func New() *Disk {
	return &Disk{dirs: map[string]bool{}, names: map[string]*content{}, safe: map[string]*content{}, locked: map[string]bool{}}
}

// Inject lets f decide which operations fail from now on; nil = none.
func (d *Disk) Inject(f Fault) {
	d.mu.Lock()
	d.fault = f
	d.mu.Unlock()
}

const blockSize = 4 << 10 // files take whole blocks of a disk with a limit

// Limit bounds the bytes of all files from now on, to what others leave of a disk; 0 = no bound.
func (d *Disk) Limit(n int64) {
	d.mu.Lock()
	d.limit = n
	d.mu.Unlock()
}

// Free implements store.FS.
func (d *Disk) Free(string) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limit == 0 {
		return 0, errors.ErrUnsupported
	}
	return max(0, d.freeLocked()), nil
}

func (d *Disk) freeLocked() int64 {
	free := d.limit
	for _, c := range d.names {
		free -= (int64(len(c.now)) + blockSize - 1) / blockSize * blockSize
	}
	return free
}

// Sync writes everything back, as an operating system does after some seconds.
func (d *Disk) Sync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.safe = make(map[string]*content, len(d.names))
	for name, c := range d.names {
		c.safe = bytes.Clone(c.now)
		d.safe[name] = c
	}
	d.changes = nil
}

// Killed returns the disk as a process finds it after this one was killed.
func (d *Disk) Killed() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copyLocked(d.names, func(c *content) []byte { return bytes.Clone(c.now) })
}

// PowerCut returns the disk as a machine finds it after a power cut. Of the changes to
// names since the last Sync, a first part survives. Of each file, a random selection of the
// pages of 4 KiB written since survives, and it has the old length or the new one.
func (d *Disk) PowerCut(rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := maps.Clone(d.safe)
	for _, change := range d.changes[:rng.IntN(len(d.changes)+1)] {
		change(names)
	}
	return d.copyLocked(names, func(c *content) []byte { return c.torn(rng) })
}

func (c *content) torn(rng *rand.Rand) []byte {
	const page = 4 << 10
	size := len(c.now)
	if rng.IntN(2) == 0 {
		size = len(c.safe)
	}
	b := make([]byte, size)
	whole := rng.IntN(2) == 0 // mostly all was written or none
	all := rng.IntN(2) == 0
	for at := 0; at < size; at += page {
		from := c.safe
		if whole && all || !whole && rng.IntN(2) == 0 {
			from = c.now
		}
		if at < len(from) {
			copy(b[at:min(at+page, size)], from[at:])
		}
	}
	return b
}

// copyLocked copies the files with these names, in the order of names. d.mu is held.
func (d *Disk) copyLocked(names map[string]*content, data func(*content) []byte) *Disk {
	after := New()
	maps.Copy(after.dirs, d.dirs)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b := data(names[name])
		c := &content{now: b, safe: bytes.Clone(b)}
		after.names[name], after.safe[name] = c, c
	}
	return after
}

// Names returns the names of the files below a directory, sorted.
func (d *Disk) Names(dir string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.names)), func(name string) bool { return !within(dir, name) })
}

// do carries out an operation on a name, unless a fault is injected.
func (d *Disk) do(op Op, name string, f func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(op, name, nil); err != nil {
		return err
	}
	return f()
}

// beginLocked calls the Fault, and returns how many bytes of b the operation processes before it
// fails. d.mu is held.
func (d *Disk) beginLocked(op Op, name string, b []byte) (int, error) {
	if d.fault == nil {
		return len(b), nil
	}
	n, err := d.fault(op, name, b)
	if err != nil {
		return min(max(n, 0), len(b)), failed(op, name, err)
	}
	return len(b), nil
}

// changeLocked makes a change to names that a power cut may undo. d.mu is held.
func (d *Disk) changeLocked(change func(names map[string]*content)) {
	change(d.names)
	d.changes = append(d.changes, change)
}

func failed(op Op, name string, err error) error {
	return &fs.PathError{Op: string(op), Path: name, Err: err}
}

// within reports whether a name is dir or below it.
func within(dir, name string) bool {
	return name == dir || strings.HasPrefix(name, dir+string(filepath.Separator))
}

type unlock func()

func (u unlock) Close() error { u(); return nil }

// Lock implements store.FS.
func (d *Disk) Lock(name string) (l io.Closer, err error) {
	err = d.do(Lock, name, func() error {
		if d.locked[name] {
			return diskstore.ErrLocked
		}
		d.locked[name] = true
		l = unlock(func() {
			d.mu.Lock()
			delete(d.locked, name)
			d.mu.Unlock()
		})
		return nil
	})
	return l, err
}

// Open implements store.FS.
func (d *Disk) Open(name string) (diskstore.File, error) { return d.open(Open, name) }

// Edit implements store.FS.
func (d *Disk) Edit(name string) (diskstore.File, error) { return d.open(Edit, name) }

func (d *Disk) open(op Op, name string) (f diskstore.File, err error) {
	err = d.do(op, name, func() error {
		if d.names[name] == nil {
			return failed(op, name, syscall.ENOENT)
		}
		f = &file{d, name, d.names[name]}
		return nil
	})
	return f, err
}

// Create implements store.FS.
func (d *Disk) Create(name string) (f diskstore.File, err error) {
	err = d.do(Create, name, func() error {
		switch {
		case d.names[name] != nil:
			return failed(Create, name, syscall.EEXIST)
		case !d.dirs[filepath.Dir(name)]:
			return failed(Create, name, syscall.ENOENT)
		}
		c := &content{}
		d.changeLocked(func(names map[string]*content) { names[name] = c })
		f = &file{d, name, c}
		return nil
	})
	return f, err
}

// Remove implements store.FS.
func (d *Disk) Remove(name string) error {
	return d.do(Remove, name, func() error {
		if d.names[name] == nil {
			return failed(Remove, name, syscall.ENOENT)
		}
		d.changeLocked(func(names map[string]*content) { delete(names, name) })
		return nil
	})
}

// RemoveAll removes all files below a directory, as somebody else might.
func (d *Disk) RemoveAll(name string) error {
	return d.do(Remove, name, func() error {
		maps.DeleteFunc(d.dirs, func(dir string, _ bool) bool { return within(name, dir) })
		d.changeLocked(func(names map[string]*content) {
			maps.DeleteFunc(names, func(other string, _ *content) bool { return within(name, other) })
		})
		return nil
	})
}

// MkdirAll implements store.FS.
func (d *Disk) MkdirAll(name string) error {
	return d.do(MkdirAll, name, func() error {
		for dir := name; !d.dirs[dir]; dir = filepath.Dir(dir) { // it ends at the root, which is its own parent
			d.dirs[dir] = true
		}
		return nil
	})
}

// ReadDir implements store.FS.
func (d *Disk) ReadDir(name string) (in []string, err error) {
	err = d.do(ReadDir, name, func() error {
		if !d.dirs[name] {
			return failed(ReadDir, name, syscall.ENOENT)
		}
		for _, other := range slices.AppendSeq(slices.Collect(maps.Keys(d.names)), maps.Keys(d.dirs)) {
			if filepath.Dir(other) == name && other != name {
				in = append(in, filepath.Base(other))
			}
		}
		slices.Sort(in)
		return nil
	})
	return in, err
}

// A file is an open file. It stays readable after its name is removed.
type file struct {
	d    *Disk
	name string
	c    *content
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n := 0
	if off < int64(len(f.c.now)) {
		n = copy(p, f.c.now[off:])
	}
	if _, err := f.d.beginLocked(Read, f.name, p[:n]); err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.d.beginLocked(Write, f.name, p)
	if f.d.limit > 0 {
		have := (int64(len(f.c.now)) + blockSize - 1) / blockSize * blockSize
		if fits := max(f.d.freeLocked()/blockSize*blockSize, 0) + have - off; err == nil && int64(n) > fits && off+int64(n) > int64(len(f.c.now)) {
			n, err = int(max(fits, 0)), failed(Write, f.name, syscall.ENOSPC)
		}
	}
	if n > 0 {
		f.c.grow(off + int64(n))
		copy(f.c.now[off:], p[:n])
	}
	return n, err
}

// grow extends the file to size, if it is shorter.
func (c *content) grow(size int64) {
	c.now = append(c.now, make([]byte, max(0, size-int64(len(c.now))))...)
}

func (f *file) Truncate(size int64) error {
	return f.d.do(Truncate, f.name, func() error {
		f.c.grow(size)
		f.c.now = f.c.now[:size]
		return nil
	})
}

func (f *file) Size() (size int64, err error) {
	err = f.d.do(Size, f.name, func() error {
		size = int64(len(f.c.now))
		return nil
	})
	return size, err
}

func (f *file) Close() error { return nil }
