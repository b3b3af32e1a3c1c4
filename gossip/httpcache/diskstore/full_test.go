//go:build linux

package diskstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// smallDisk mounts a file system of that many bytes, if that is allowed.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestFullDisk: a store whose bound is larger than the disk serves no wrong
// byte, delivers every body, and makes room for the next objects.
func TestFullDisk(t *testing.T) {
	m := newMirror()
	s := open(t, Options{Dir: smallDisk(t, 4<<20), MaxBytes: 64 << 20, Hooks: m.hooks()})
	failed, stored := 0, 0
	for i := range 200 {
		key := fmt.Sprint(i)
		b := body(uint64(i), 60_000+i%2*40_000)
		w, err := s.Create(key, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		f, _ := w.Follow(t.Context())
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(bodies.Meta{}); err != nil {
			failed++
		} else {
			stored++
		}
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("object %d: delivered %d of %d bytes, %v", i, len(got), len(b), err)
		}
		f.Close()
		s.flush()
	}
	m.check(t, s)
	if stored <= 4<<20/60_000 { // more than fit, so room was made; how often there is none depends on the machine
		t.Errorf("%d stored, %d failed: %+v", stored, failed, s.Stats())
	}
	good := 0
	for key := range s.Keys() {
		var i int
		fmt.Sscan(key, &i)
		_, b, err := read(s, key)
		if err != nil && !errors.Is(err, bodies.ErrGone) || err == nil && !bytes.Equal(b, body(uint64(i), 60_000+i%2*40_000)) {
			t.Errorf("object %d: %d bytes, %v", i, len(b), err)
		}
		good++
	}
	if good == 0 {
		t.Error("nothing is left in the store")
	}
	if left := files(t, s.opt.Dir); len(left) != large(s) {
		t.Errorf("%d files of %d objects", len(left), large(s))
	}
	if strings.Contains(fmt.Sprint(s.Stats()), "-") {
		t.Errorf("negative figures: %+v", s.Stats())
	}
}

// TestDiskOf256MiB: on a real disk, objects of several sizes fill four fifths of what the disk has for
// them, while somebody else's file grows and goes.
func TestDiskOf256MiB(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a gigabyte; there is nothing for the race detector in it")
	}
	const disk, other = 256 << 20, 112 << 20
	dir := smallDisk(t, disk)
	s := open(t, Options{Dir: dir + "/store", MaxBytes: 1 << 30})
	next, refused := 0, 0
	fill := func(n int) {
		for left := n; left > 0; {
			size := []int{700, 10_000, 60_000, 200_000, 3_000_000}[next%5]
			w, err := s.Create(fmt.Sprint(next), int64(size))
			check(t, err)
			if err = w.Write(t.Context(), body(uint64(next), size)); err == nil {
				_, err = w.Commit(bodies.Meta{})
			}
			if err != nil {
				w.Abort()
				refused++
			}
			next++
			left -= size
		}
	}
	look := func() { // as each few seconds
		s.measure(false)
		s.segments.collect()
		s.makeRoom()
		s.flush()
	}
	full := func(room int64) {
		t.Helper()
		look()
		if st := s.Stats(); st.Bytes < room*8/10 || st.RoomLimit == "" {
			t.Errorf("objects have %d bytes of %d: %+v", st.Bytes, room, st)
		}
	}
	fill(2 * disk)
	full(disk)
	foreign, err := os.Create(dir + "/log")
	check(t, err)
	defer foreign.Close()
	for had := 0; had < other; {
		n, err := foreign.Write(make([]byte, 1<<20))
		if had += n; err != nil && !isFull(err) {
			t.Fatal(err)
		}
		look()
	}
	fill(disk)
	full(disk - other)
	check(t, os.Remove(dir+"/log"))
	check(t, foreign.Close())
	look()
	fill(disk)
	full(disk)
	for key := range s.Keys() {
		if _, _, err := read(s, key); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	if t.Logf("%d of %d objects were not stored", refused, next); refused > next/50 {
		t.Errorf("%d of %d objects were not stored: %+v", refused, next, s.Stats())
	}
}
