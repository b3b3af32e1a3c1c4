package diskstore_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

// A countedDisk counts the files that are open.
type countedDisk struct {
	*disktest.Disk
	open atomic.Int64
}

type countedFile struct {
	diskstore.File
	of *countedDisk
}

func (f countedFile) Close() error {
	f.of.open.Add(-1)
	return f.File.Close()
}

func (d *countedDisk) counted(f diskstore.File, err error) (diskstore.File, error) {
	if err != nil {
		return nil, err
	}
	d.open.Add(1)
	return countedFile{f, d}, nil
}

func (d *countedDisk) Open(name string) (diskstore.File, error) { return d.counted(d.Disk.Open(name)) }
func (d *countedDisk) Edit(name string) (diskstore.File, error) { return d.counted(d.Disk.Edit(name)) }
func (d *countedDisk) Create(name string) (diskstore.File, error) {
	return d.counted(d.Disk.Create(name))
}

// A store that cannot be opened, since any one operation of the disk fails, leaves no file open, and what is stored can be
// had as soon as the disk works.
func TestEveryFailureToOpen(t *testing.T) {
	full := disktest.New()
	s, err := diskstore.Open(diskstore.Options{Dir: "/store", MaxBytes: 4 << 20, FS: full})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 { // in several segments
		if err := store(t, s, fmt.Sprint(i), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	failures := 0
	for n := 0; ; n++ {
		d := &countedDisk{Disk: full.Killed()}
		calls := 0
		d.Inject(func(op disktest.Op, name string, b []byte) (int, error) {
			if calls++; calls == n+1 {
				return 0, errors.New("the disk fails once")
			}
			return len(b), nil
		})
		o := diskstore.Options{Dir: "/store", MaxBytes: 4 << 20, FS: d}
		s, err := diskstore.Open(o)
		if err != nil {
			failures++
			if k := d.open.Load(); k != 0 {
				t.Errorf("call %d fails, %v: %d files stay open", n, err, k)
			}
			if s, err = diskstore.Open(o); err != nil {
				t.Fatalf("call %d failed, and then: %v", n, err)
			}
		}
		if got := s.Stats().Objects; got < 900 && err == nil && calls <= n {
			t.Errorf("call %d: %d objects", n, got)
		}
		s.Close()
		if k := d.open.Load(); k != 0 {
			t.Errorf("call %d: %d files stay open after the end", n, k)
		}
		if calls <= n {
			break
		}
	}
	if failures < 10 {
		t.Errorf("only %d of the calls make it fail", failures)
	}
}
