package diskstore

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// testdata/frozen holds stores that earlier revisions of this program wrote, each in a directory
// named after the revision. They are never written again: an operator who upgrades keeps the
// objects, or is told by name that they cannot be read.

var freeze = flag.String("freeze", "", "write testdata/frozen/`NAME`, which must not exist")

const frozenDir = "testdata/frozen"

var (
	frozenSizes = []int{0, 1, 100, blockSize + 1, 4*blockSize + 1}
	frozenUntil = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	frozenMade  = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
)

// frozenBody compresses well, since it is kept in the repository.
func frozenBody(n int) []byte { return bytes.Repeat([]byte("frozen. "), n/8+1)[:n] }

// TestFreeze writes a store of today's program, if asked to.
func TestFreeze(t *testing.T) {
	if *freeze == "" {
		t.Skip("only with -freeze NAME")
	}
	dir := filepath.Join(frozenDir, *freeze)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("what is frozen is not written again")
	}
	s := open(t, Options{Dir: dir})
	for _, n := range frozenSizes {
		put(t, s, fmt.Sprint("listed ", n), frozenBody(n), bodies.Meta{Data: fmt.Appendf(nil, "meta %d", n), ListUntil: frozenUntil, Generated: frozenMade})
	}
	put(t, s, "not listed", frozenBody(10), bodies.Meta{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// refused has each store whose files are no longer read.
var refused = []string{"2026-11-21-862c874", "2026-11-22-8dc0ad2", "2026-11-23-f865307"}

// everything returns the names of all files below a directory, but for the lock.
func everything(t *testing.T, dir string) (names []string) {
	check(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && name != "lock" {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// Today's code opens the stores of all earlier versions and finds every object, or refuses a store by the
// name of a file in another format and leaves it as it is.
func TestFrozen(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(frozenDir, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("nothing is frozen: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			mine := filepath.Join(t.TempDir(), "store")
			if err := os.CopyFS(mine, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			m := newMirror()
			o := Options{Dir: mine, MaxBytes: 64 << 20, Hooks: m.hooks()}
			if slices.Contains(refused, filepath.Base(dir)) {
				_, err := openStore(o)
				if want := "a format that this program does not read"; err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), mine) != 1 {
					t.Errorf("Open = %v, want an error that names one file and %s", err, want)
				}
				if left, want := everything(t, mine), everything(t, dir); len(left) != len(want) {
					t.Errorf("%d files of %d are left", len(left), len(want))
				}
				return
			}
			s := open(t, o)
			for _, n := range frozenSizes {
				key := fmt.Sprint("listed ", n)
				data, b, err := read(s, key)
				if err != nil || string(data) != fmt.Sprintf("meta %d", n) || !bytes.Equal(b, frozenBody(n)) {
					t.Errorf("read(%q) = %q, %d bytes, %v", key, data, len(b), err)
				}
				if m.count(key) != 1 {
					t.Errorf("%q is not listed", key)
				}
			}
			if _, b, err := read(s, "not listed"); err != nil || len(b) != 10 {
				t.Errorf(`read("not listed") = %d bytes, %v`, len(b), err)
			}
			if st := s.Stats(); st.Objects != len(frozenSizes)+1 || st.Listed != len(frozenSizes) || st.Removed != 0 || st.Corrupt != 0 {
				t.Errorf("Stats() = %+v", st)
			}
			m.check(t, s)
		})
	}
}
