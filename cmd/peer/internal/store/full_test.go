//go:build linux

package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
		if _, err := w.Commit(Meta{}); err != nil {
			failed++
		} else {
			stored++
		}
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("object %d: delivered %d of %d bytes, %v", i, len(got), len(b), err)
		}
		f.Close()
		s.trash.drain()
	}
	m.check(t, s)
	if failed == 0 || stored < 100 {
		t.Errorf("%d stored, %d failed: %+v", stored, failed, s.Stats())
	}
	good := 0
	for key := range s.Keys() {
		var i int
		fmt.Sscan(key, &i)
		_, b, err := read(s, key)
		if err != nil && !errors.Is(err, ErrGone) || err == nil && !bytes.Equal(b, body(uint64(i), 60_000+i%2*40_000)) {
			t.Errorf("object %d: %d bytes, %v", i, len(b), err)
		}
		good++
	}
	if good == 0 {
		t.Error("nothing is left in the store")
	}
	if left, _ := os.ReadDir(s.opt.Dir + "/tmp"); len(left) != 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
	if strings.Contains(fmt.Sprint(s.Stats()), "-") {
		t.Errorf("negative figures: %+v", s.Stats())
	}
}
