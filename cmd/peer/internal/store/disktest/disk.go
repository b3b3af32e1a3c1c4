// Package disktest is a disk in memory for tests of what stands on package store:
// it fails as it is told to, and loses at a power cut what was not written back.
//
// Start from [New], give the disk as Options.FS, and say by [Disk.Inject] what goes
// wrong. [Disk.Killed] and [Disk.PowerCut] are what a machine finds when the process,
// or the machine, starts again; the disk itself stays as it is for those who still
// use it.
package disktest

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

// An Op is an operation of a disk.
type Op string

// The operations, by the methods of store.FS and store.File.
const (
	Lock     Op = "lock"
	Open     Op = "open"
	Create   Op = "create"
	Edit     Op = "edit"
	Rename   Op = "rename" // of the old name
	Remove   Op = "remove"
	ReadDir  Op = "readdir"
	MkdirAll Op = "mkdir"
	Read     Op = "read"
	Write    Op = "write"
	Truncate Op = "truncate"
	Size     Op = "size"
)

// A Fault decides what goes wrong. It is called for every operation with the name
// of the file: of a read after it, with the bytes read, which it may change; of a
// write before it, with the bytes to be written. If it returns an error the
// operation fails by it, a write after the first n bytes. It is called with the
// disk locked.
type Fault func(op Op, name string, b []byte) (n int, err error)

// A Disk is safe for concurrent use.
type Disk struct {
	mu      sync.Mutex
	fault   Fault
	dirs    map[string]bool // there at once, and for good
	names   map[string]*content
	safe    map[string]*content // the names that survive a power cut
	changes []func(names map[string]*content)
	locked  map[string]bool
}

// content is what a file holds.
type content struct {
	now  []byte
	safe []byte // what surely survives a power cut
}

// New returns an empty disk.
func New() *Disk {
	return &Disk{dirs: map[string]bool{}, names: map[string]*content{}, safe: map[string]*content{}, locked: map[string]bool{}}
}

// Inject has f decide what goes wrong from now on; nil = nothing.
func (d *Disk) Inject(f Fault) {
	d.mu.Lock()
	d.fault = f
	d.mu.Unlock()
}

// Sync writes everything back, as a system does after some seconds.
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

// PowerCut returns the disk as a machine finds it after a power cut: of what was
// done to names since the last Sync, a first part; of each file, any of the pages
// of 4 KiB written since, and the old length or the new.
func (d *Disk) PowerCut(rng *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make(map[string]*content, len(d.safe))
	maps.Copy(names, d.safe)
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

// copyLocked copies what names lead to, in the order of names. d.mu is held.
func (d *Disk) copyLocked(names map[string]*content, data func(*content) []byte) *Disk {
	after := New()
	for dir := range d.dirs {
		after.dirs[dir] = true
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	for _, name := range sorted {
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
	var below []string
	for name := range d.names {
		if strings.HasPrefix(name, dir+string(filepath.Separator)) {
			below = append(below, name)
		}
	}
	slices.Sort(below)
	return below
}

// beginLocked asks for a fault. d.mu is held.
func (d *Disk) beginLocked(op Op, name string, b []byte) (int, error) {
	if d.fault == nil {
		return len(b), nil
	}
	n, err := d.fault(op, name, b)
	if err != nil {
		return min(max(n, 0), len(b)), &fs.PathError{Op: string(op), Path: name, Err: err}
	}
	return len(b), nil
}

// changeLocked makes a change to names that a power cut may undo. d.mu is held.
func (d *Disk) changeLocked(change func(names map[string]*content)) {
	change(d.names)
	d.changes = append(d.changes, change)
}

func missing(op Op, name string) error {
	return &fs.PathError{Op: string(op), Path: name, Err: syscall.ENOENT}
}

type unlock func()

func (u unlock) Close() error { u(); return nil }

// Lock implements store.FS.
func (d *Disk) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(Lock, name, nil); err != nil {
		return nil, err
	}
	if d.locked[name] {
		return nil, store.ErrLocked
	}
	d.locked[name] = true
	return unlock(func() {
		d.mu.Lock()
		delete(d.locked, name)
		d.mu.Unlock()
	}), nil
}

// Open implements store.FS.
func (d *Disk) Open(name string) (store.File, error) { return d.open(Open, name) }

// Edit implements store.FS.
func (d *Disk) Edit(name string) (store.File, error) { return d.open(Edit, name) }

func (d *Disk) open(op Op, name string) (store.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(op, name, nil); err != nil {
		return nil, err
	}
	c := d.names[name]
	if c == nil {
		return nil, missing(op, name)
	}
	return &file{d, name, c}, nil
}

// Create implements store.FS.
func (d *Disk) Create(name string) (store.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(Create, name, nil); err != nil {
		return nil, err
	}
	switch {
	case d.names[name] != nil:
		return nil, &fs.PathError{Op: string(Create), Path: name, Err: syscall.EEXIST}
	case !d.dirs[filepath.Dir(name)]:
		return nil, missing(Create, name)
	}
	c := &content{}
	d.changeLocked(func(names map[string]*content) { names[name] = c })
	return &file{d, name, c}, nil
}

// Rename implements store.FS.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(Rename, from, nil); err != nil {
		return err
	}
	if d.names[from] == nil || !d.dirs[filepath.Dir(to)] {
		return missing(Rename, from)
	}
	d.changeLocked(func(names map[string]*content) {
		names[to] = names[from]
		delete(names, from)
	})
	return nil
}

// Remove implements store.FS.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(Remove, name, nil); err != nil {
		return err
	}
	if d.names[name] == nil {
		return missing(Remove, name)
	}
	d.changeLocked(func(names map[string]*content) { delete(names, name) })
	return nil
}

// RemoveAll implements store.FS.
func (d *Disk) RemoveAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(Remove, name, nil); err != nil {
		return err
	}
	within := func(other string) bool {
		return other == name || strings.HasPrefix(other, name+string(filepath.Separator))
	}
	for dir := range d.dirs {
		if within(dir) {
			delete(d.dirs, dir)
		}
	}
	d.changeLocked(func(names map[string]*content) {
		for other := range names {
			if within(other) {
				delete(names, other)
			}
		}
	})
	return nil
}

// MkdirAll implements store.FS.
func (d *Disk) MkdirAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(MkdirAll, name, nil); err != nil {
		return err
	}
	for !d.dirs[name] { // it ends at the root, which is its own parent
		d.dirs[name] = true
		name = filepath.Dir(name)
	}
	return nil
}

// ReadDir implements store.FS.
func (d *Disk) ReadDir(name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.beginLocked(ReadDir, name, nil); err != nil {
		return nil, err
	}
	if !d.dirs[name] {
		return nil, missing(ReadDir, name)
	}
	var in []string
	for other := range d.names {
		if filepath.Dir(other) == name {
			in = append(in, filepath.Base(other))
		}
	}
	for other := range d.dirs {
		if filepath.Dir(other) == name && other != name {
			in = append(in, filepath.Base(other))
		}
	}
	slices.Sort(in)
	return in, nil
}

// A file is an open one; it stays readable when its name goes.
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
	if grow := off + int64(n) - int64(len(f.c.now)); grow > 0 {
		f.c.now = append(f.c.now, make([]byte, grow)...)
	}
	copy(f.c.now[off:], p[:n])
	return n, err
}

func (f *file) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.beginLocked(Truncate, f.name, nil); err != nil {
		return err
	}
	if size <= int64(len(f.c.now)) {
		f.c.now = f.c.now[:size]
	} else {
		f.c.now = append(f.c.now, make([]byte, size-int64(len(f.c.now)))...)
	}
	return nil
}

func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.beginLocked(Size, f.name, nil); err != nil {
		return 0, err
	}
	return int64(len(f.c.now)), nil
}

func (f *file) Cached(int64, int64) bool { return false }

func (f *file) Uncache(int64, int64) {}

func (f *file) Close() error { return nil }
