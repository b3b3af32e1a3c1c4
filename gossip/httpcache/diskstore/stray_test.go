package diskstore

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// TestStrayFiles: of what lies in a store's directories a start looks at files that have the name of one of its own,
// to the letter. Anything else is somebody else's: it stays as it is, and the store opens and keeps its objects.
func TestStrayFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	small, large := put(t, s, "small", body(1, 1000), bodies.Meta{}), put(t, s, "large", body(2, 70_000), bodies.Meta{})
	segment, _ := filepath.Rel(dir, s.segments.path(small.seg, "data"))
	s.Close()
	var strays []string
	add := func(name string) {
		t.Helper()
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte("not ours"), 0o600))
		strays = append(strays, path)
	}
	for _, kind := range []string{"data", "index"} {
		for _, name := range []string{"1.", "0000000000000001.", "00000000000000AB.", "000000000000000000ab.", "00000000000000ab.bak.", "zz000000000000ab.", ".", ""} {
			if segment := filepath.Join("objects", "segments", name+kind); name != "0000000000000001." {
				add(segment)
			}
		}
	}
	for _, name := range []string{"lost", "1", "00000000000000AB", "0000000000000000ab", "00000000000000ab.bak", "00000000000000ac", "+0000000000000ab"} {
		add(filepath.Join("objects", "ab", name)) // of those with the name of an object the last digits are their directory's
	}
	for _, name := range []string{"abc/00000000000000ab", "AC/00000000000000ac", "a/000000000000000a", "notes"} {
		add(filepath.Join("objects", name))
	}
	add("notes")
	gone := filepath.Join(dir, filepath.Dir(segment), "00000000000000aa.data")
	check(t, os.WriteFile(gone, []byte("without an index"), 0o600)) // by its name it is a segment's
	for range 2 {
		s = open(t, Options{Dir: dir})
		for key, want := range map[string][]byte{small.Key(): body(1, 1000), large.Key(): body(2, 70_000)} {
			if _, got, err := read(s, key); !bytes.Equal(got, want) || err != nil {
				t.Errorf("read(%s) = %d bytes, %v", key, len(got), err)
			}
		}
		if st := s.Stats(); st.Objects != 2 || st.Removed != 0 {
			t.Errorf("Stats() = %d objects, %d removed, want 2 and none", st.Objects, st.Removed)
		}
		s.Close()
	}
	for _, path := range strays {
		if b, err := os.ReadFile(path); string(b) != "not ours" {
			t.Errorf("%s is %q, %v", path, b, err)
		}
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("the data of a segment without an index stay: %v", err)
	}
	if slices.Contains(strays, filepath.Join(dir, segment)) {
		t.Fatalf("%s is the store's own", segment)
	}
}
