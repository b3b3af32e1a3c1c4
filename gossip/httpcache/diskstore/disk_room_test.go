package diskstore_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

// fill stores n bytes of objects of that size, each when the store has evicted what it had to for the
// one before, and returns how many were stored.
func fill(t *testing.T, s diskstore.Store, name string, n, size int) (stored int) {
	t.Helper()
	b := bytes.Repeat([]byte(name[:1]), size)
	for i := range n / size {
		w, err := s.Create(fmt.Sprint(name, i), int64(size))
		if err != nil {
			continue
		}
		if err := w.Write(t.Context(), b); err != nil {
			w.Abort()
			continue
		}
		if _, err := w.Commit(bodies.Meta{}); err == nil {
			stored++
		}
		synctest.Wait()
	}
	return stored
}

// wantFull: objects take at least four fifths of the room, which is what the disk has, and each
// can be read.
func wantFull(t *testing.T, s diskstore.Store, disk int64) {
	t.Helper()
	synctest.Wait()
	st := s.Stats()
	if st.Bytes < disk*8/10 || st.Bytes > disk {
		t.Errorf("objects have %d of %d bytes: %+v", st.Bytes, disk, st)
	}
	for key := range s.Keys() {
		o, ok := s.Get(key)
		if !ok {
			continue
		}
		v, err := s.Open(o, nil)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		v.Close()
	}
}

// TestDiskSmallerThanStore: objects fill a disk that is smaller than the store may be.
func TestDiskSmallerThanStore(t *testing.T) {
	for _, disk := range []int64{16 << 20, 24 << 20} {
		for _, size := range []int{4000, 40_000, 100_000, 1_000_000} {
			t.Run(fmt.Sprintf("disk=%dMiB/object=%d", disk>>20, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := disktest.New()
					d.Limit(disk)
					s, err := diskstore.Open(diskstore.Options{Dir: "/store", MaxBytes: 1 << 30, FS: d})
					if err != nil {
						t.Fatal(err)
					}
					defer func() { s.Close() }()
					n := fill(t, s, "a", int(disk)*3/2, size)
					wantFull(t, s, disk)
					if st := s.Stats(); st.RoomBytes > disk || st.RoomLimit == "" || n < int(disk)/size {
						t.Errorf("%d stored, %+v", n, st)
					}
					s.Close()
					if s, err = diskstore.Open(diskstore.Options{Dir: "/store", MaxBytes: 1 << 30, FS: d}); err != nil {
						t.Fatal(err)
					}
					wantFull(t, s, disk)
				})
			})
		}
	}
}

// TestDiskShrinksAndGrows: the store gives way to others on its disk, and takes the room again when
// they have gone. It says so as long as that lasts, and logs it once.
func TestDiskShrinksAndGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10_000
		d := disktest.New()
		var logged bytes.Buffer
		s, err := diskstore.Open(diskstore.Options{Dir: "/store", MaxBytes: 64 << 20, FS: d, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, disk := range []int64{80 << 20, 20 << 20, 16 << 20, 40 << 20, 18 << 20, 80 << 20} {
			d.Limit(disk)
			if i != 1 { // there the store is writing when its room goes
				time.Sleep(10 * time.Second)
			}
			fill(t, s, string(rune('a'+i)), 80<<20, size)
			synctest.Wait()
			wantFull(t, s, min(disk, 64<<20))
			time.Sleep(2 * time.Minute)
			st := s.Stats()
			if short := disk < 64<<20; short != (st.RoomLimit != "") || short != (st.RoomBytes < st.MaxBytes) {
				t.Errorf("disk of %d: room %d, %q", disk, st.RoomBytes, st.RoomLimit)
			}
		}
		if n, m := strings.Count(logged.String(), "less room"), strings.Count(logged.String(), "whole store again"); n != 1 || m != 1 {
			t.Errorf("logged %d times that there is less room, %d times that there is enough:\n%s", n, m, logged.String())
		}
	})
}

// TestForeignFiles: a start removes only the files of bodies that a store has written.
func TestForeignFiles(t *testing.T) {
	d := disktest.New()
	d.MkdirAll("/store/objects/bodies/ab")
	for _, name := range []string{"notes", "0000000000000001.bak", "1", "00000000000000aB", "00000000000000ab"} {
		if _, err := d.Create("/store/objects/bodies/ab/" + name); err != nil {
			t.Fatal(err)
		}
	}
	s, err := diskstore.Open(diskstore.Options{Dir: "/store", MaxBytes: 1 << 20, FS: d})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := d.Names("/store/objects/bodies"); len(got) != 4 || s.Stats().Removed != 1 {
		t.Errorf("%q are left, %d removed", got, s.Stats().Removed)
	}
}
