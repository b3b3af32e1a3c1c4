package diskstore_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

// What users of other stores reported about their disks, tried here: cmd/peer/REPORTS.md names them.

func opened(t *testing.T, o diskstore.Options) diskstore.Store {
	t.Helper()
	s, err := diskstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// store stores a body under a key, and returns the error of its commit.
func store(t *testing.T, s diskstore.Store, key string, body []byte) error {
	t.Helper()
	w, err := s.Create(key, int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), body); err != nil {
		t.Fatal(err)
	}
	_, err = w.Commit(bodies.Meta{Data: []byte(key)})
	return err
}

// load returns the body under a key.
func load(t *testing.T, s diskstore.Store, key string) []byte {
	t.Helper()
	cur, ok := s.Get(key)
	if !ok {
		t.Fatalf("%s is not there", key)
	}
	v, err := s.Open(cur, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	src, err := v.Source(0, cur.Size())
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(src)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// size returns the bytes of the files in a directory and below.
func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// settles waits until the work in the background has made a condition true.
func settles(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 1_000_000 {
		if is() {
			return
		}
		runtime.Gosched()
	}
	t.Error(what)
}

// TestDeletedGivesRoom: what is deleted gives its room on the disk back, but for two segments.
func TestDeletedGivesRoom(t *testing.T) {
	o := diskstore.Options{Dir: t.TempDir(), MaxBytes: 16 << 20}
	s := opened(t, o)
	for i := range 800 {
		if err := store(t, s, fmt.Sprint(i), content(i)); err != nil {
			t.Fatal(err)
		}
	}
	full := size(t, o.Dir)
	for i := range 800 {
		s.Delete(fmt.Sprint(i))
	}
	const segment = 16 << 20 / 64
	settles(t, "the room of deleted objects stays taken", func() bool { return size(t, o.Dir) < 2*segment+segment/2 })
	if full < 16*segment {
		t.Errorf("800 objects took %d bytes", full)
	}
}

// TestDescribedForEver: an object that is described anew again and again takes no more room than the store may, and
// costs no other.
func TestDescribedForEver(t *testing.T) {
	o := diskstore.Options{Dir: t.TempDir(), MaxBytes: 4 << 20}
	s := opened(t, o)
	for i := range 40 {
		if err := store(t, s, fmt.Sprint(i), content(i)); err != nil {
			t.Fatal(err)
		}
	}
	most := int64(0)
	for n := range 5000 {
		cur, ok := s.Get("39")
		if !ok {
			t.Fatalf("gone after %d descriptions", n)
		}
		if _, err := s.Update(cur, bodies.Meta{Data: fmt.Append(nil, n)}); err != nil {
			t.Fatal(err)
		}
		if n%500 == 0 {
			most = max(most, size(t, o.Dir))
		}
	}
	if most > o.MaxBytes {
		t.Errorf("the store took %d bytes of %d", most, o.MaxBytes)
	}
	if st := s.Stats(); st.Objects != 40 {
		t.Errorf("%d objects are left of 40", st.Objects)
	}
}

// TestNoDescriptors: a file that can't be opened because the process has too many open is not taken for a broken one,
// at a start, when a body is read, and when a segment is turned over.
func TestNoDescriptors(t *testing.T) {
	disk := disktest.New()
	o := diskstore.Options{Dir: "/store", MaxBytes: 4 << 20, FS: disk}
	s := opened(t, o)
	large := bytes.Repeat([]byte("large "), 20_000)
	for i := range 60 {
		if err := store(t, s, fmt.Sprint(i), content(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store(t, s, "large", large); err != nil {
		t.Fatal(err)
	}
	s.Close()
	opens := []disktest.Op{disktest.Open, disktest.Edit, disktest.Create, disktest.ReadDir}
	for at := 1; ; at++ {
		n := 0
		disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
			if slices.Contains(opens, op) {
				if n++; n >= at {
					return 0, syscall.EMFILE
				}
			}
			return len(b), nil
		})
		s, err := diskstore.Open(o)
		if err == nil {
			s.Close()
			break
		}
		if at > 50 {
			t.Fatal(err)
		}
	}
	disk.Inject(nil)
	s = opened(t, o)
	if st := s.Stats(); st.Objects != 61 || st.Removed > 0 {
		t.Fatalf("%d objects were found and %d removed, want 61 and none", st.Objects, st.Removed)
	}
	disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
		if slices.Contains(opens, op) {
			return 0, syscall.EMFILE
		}
		return len(b), nil
	})
	cur, _ := s.Get("large")
	if _, err := s.Open(cur, nil); err == nil {
		t.Error("a file was opened")
	}
	held := map[string]bool{}
	for i := range 60 { // so that each segment is worth turning over
		if key := fmt.Sprint(i); i%3 > 0 {
			s.Delete(key)
		} else {
			held[key] = true
		}
	}
	settles(t, "no segment was to be turned over", func() bool { return s.Stats().WriteErrors > 0 })
	disk.Inject(nil)
	s.Close()
	s = opened(t, o)
	for key := range held {
		if _, ok := s.Peek(key); !ok {
			t.Errorf("%s is gone", key)
		}
	}
	if _, ok := s.Peek("large"); !ok {
		t.Error("the body that could not be opened is gone")
	}
}

// TestFirstSegmentTorn: whatever a power cut leaves of the first files, the store opens, stores and keeps.
func TestFirstSegmentTorn(t *testing.T) {
	from := t.TempDir()
	s := opened(t, diskstore.Options{Dir: from, MaxBytes: 4 << 20})
	if err := store(t, s, "old", content(3)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	const first = "objects/segments/0000000000000001."
	whole := map[string][]byte{}
	for _, kind := range []string{"index", "data"} {
		b, err := os.ReadFile(filepath.Join(from, first+kind))
		if err != nil {
			t.Fatal(err)
		}
		whole[kind] = b
	}
	cuts := map[string]func(b []byte) []byte{
		"missing": nil, "whole": bytes.Clone,
		"empty": func([]byte) []byte { return []byte{} }, "begun": func(b []byte) []byte { return b[:3] },
		"head": func(b []byte) []byte { return b[:8] }, "zeros": func(b []byte) []byte { return make([]byte, len(b)) },
		"zeros first": func(b []byte) []byte { return append(make([]byte, 8), b[8:]...) },
	}
	for index, cutIndex := range cuts {
		for data, cutData := range cuts {
			o := diskstore.Options{Dir: t.TempDir(), MaxBytes: 4 << 20}
			if err := os.MkdirAll(filepath.Join(o.Dir, filepath.Dir(first)), 0o700); err != nil {
				t.Fatal(err)
			}
			for kind, cut := range map[string]func([]byte) []byte{"index": cutIndex, "data": cutData} {
				if cut != nil {
					if err := os.WriteFile(filepath.Join(o.Dir, first+kind), cut(bytes.Clone(whole[kind])), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			for round := range 2 {
				s, err := diskstore.Open(o)
				if err != nil {
					t.Errorf("index %s, data %s: %v", index, data, err)
					break
				}
				if _, ok := s.Get("new"); ok != (round > 0) {
					t.Errorf("index %s, data %s: found in round %d: %v", index, data, round, ok)
				}
				if err := store(t, s, "new", content(5)); err != nil {
					t.Errorf("index %s, data %s: %v", index, data, err)
				}
				if b := load(t, s, "new"); !bytes.Equal(b, content(5)) {
					t.Errorf("index %s, data %s: %d bytes", index, data, len(b))
				}
				s.Close()
			}
		}
	}
}

// TestLargeIntoFull: the longest body that fits is written without an error into a store that is full, of short bodies,
// and of others like it that are just being read. The index may prefer what is there if that is wanted as often.
func TestLargeIntoFull(t *testing.T) {
	o := diskstore.Options{Dir: t.TempDir(), MaxBytes: 8 << 20}
	s := opened(t, o)
	for i := range 2000 {
		if err := store(t, s, fmt.Sprint(i), content(i)); err != nil {
			t.Fatal(err)
		}
	}
	large := bytes.Repeat([]byte("large..."), int(o.MaxBytes/4/8))
	for i := range 12 {
		key := fmt.Sprint("large ", i)
		cur, ok := s.Get(key)
		for range 20 { // each time it is wanted more often than anything else
			if err := store(t, s, key, large); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			if cur, ok = s.Get(key); ok {
				break
			}
		}
		switch {
		case !ok && i == 0:
			t.Fatalf("%s is wanted more often than what is there, and is not kept", key)
		case !ok: // the others are wanted as often
			continue
		}
		v, err := s.Open(cur, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close() // its reader is slow
	}
}

// TestStaleLock: a lock file that a dead process left, or one with another's number in it, keeps nobody out.
func TestStaleLock(t *testing.T) {
	for _, left := range []string{"", "1\n", "4194304\n", "not a number", strings.Repeat("9", 100)} {
		o := diskstore.Options{Dir: t.TempDir(), MaxBytes: 4 << 20}
		if err := os.WriteFile(filepath.Join(o.Dir, "lock"), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		opened(t, o).Close()
	}
}
