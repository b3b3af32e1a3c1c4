package diskstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// filled returns the directory of a closed store with small and large objects.
func filled(t *testing.T) (dir string) {
	dir = t.TempDir()
	s := open(t, Options{Dir: dir})
	for _, n := range []int{1, 1000, blockSize, 300_000} {
		put(t, s, fmt.Sprint("k", n), body(uint64(n), n), bodies.Meta{Data: []byte("meta")})
	}
	check(t, s.Close())
	return dir
}

// A store that was copied or moved, to another path or another machine, opens with its objects.
func TestMovedStore(t *testing.T) {
	dir, to := filled(t), t.TempDir()
	copied, moved := filepath.Join(to, "copied"), filepath.Join(to, "moved")
	check(t, os.CopyFS(copied, os.DirFS(dir)))
	check(t, os.Rename(dir, moved))
	for _, dir := range []string{copied, moved} {
		s := open(t, Options{Dir: dir})
		for _, n := range []int{1, 1000, blockSize, 300_000} {
			if data, b, err := read(s, fmt.Sprint("k", n)); err != nil || string(data) != "meta" || string(b) != string(body(uint64(n), n)) {
				t.Errorf("%s: k%d: %q, %d bytes, %v", dir, n, data, len(b), err)
			}
		}
		if st := s.Stats(); st.Objects != 4 || st.Removed != 0 {
			t.Errorf("%s: %+v", dir, st)
		}
	}
}

// A segment of another format, whose files both say so, is refused by name, and nothing is removed. One
// wrong byte is no other format.
func TestOtherFormat(t *testing.T) {
	for _, tt := range []struct {
		files   []string
		refused bool
	}{{[]string{"index", "data"}, true}, {[]string{"index"}, false}, {[]string{"data"}, false}} {
		dir := filled(t)
		for _, kind := range tt.files {
			names, err := filepath.Glob(filepath.Join(dir, "objects", "segments", "*."+kind))
			check(t, err)
			for _, name := range names {
				b, err := os.ReadFile(name)
				check(t, err)
				b[segmentHead-1]++
				check(t, os.WriteFile(name, b, 0o600))
			}
		}
		s, err := openStore(Options{Dir: dir, MaxBytes: 64 << 20})
		if tt.refused {
			if err == nil || errors.Is(err, errBroken) || !strings.Contains(err.Error(), filepath.Join(dir, "objects", "segments")) || !strings.Contains(err.Error(), "of a format that this program does not read") {
				t.Errorf("%s of another version: %v", tt.files, err)
			}
			continue
		}
		check(t, err)
		if st := s.Stats(); st.Removed != 2 || st.Objects != 0 { // the segment, and the body that is a file
			t.Errorf("a wrong byte in the %s: %+v", tt.files, st)
		}
		check(t, s.Close())
	}
}
