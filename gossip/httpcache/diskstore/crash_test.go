package diskstore

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// files returns the paths of the object files.
func files(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "objects", "bodies", "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestDamage changes one object's file in every way that a crash or a bad disk
// might. Then there is a miss, and never another body.
func TestDamage(t *testing.T) {
	for _, n := range []int{0, 1000, 200_000, 3 << 20} {
		want := body(9, n)
		kind := ""
		pristine := func() (dir, path string, size int64) {
			dir = t.TempDir()
			s := open(t, Options{Dir: dir})
			put(t, s, "key", want, bodies.Meta{Data: []byte("description")})
			s.Close()
			if path = s.segments.path(1, kind); kind == "body" {
				path = files(t, dir)[0]
			}
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return dir, path, st.Size()
		}
		check := func(what, dir string, harmless bool) {
			t.Helper()
			s := open(t, Options{Dir: dir})
			defer s.Close()
			for range 2 {
				data, got, err := read(s, "key")
				if err == nil && (string(data) != "description" || !bytes.Equal(got, want)) {
					t.Fatalf("n=%d, %s: served wrong bytes", n, what)
				} else if err == nil && !harmless {
					t.Errorf("n=%d, %s: went unnoticed", n, what)
				}
				if !bytes.HasPrefix(want, got) {
					t.Errorf("n=%d, %s: wrong bytes before the error", n, what)
				}
			}
			if st := s.Stats(); !harmless && st.Objects != 0 || !harmless && (st.Removed+st.Corrupt < 1 || st.Removed+st.Corrupt > 2) {
				t.Errorf("n=%d, %s: Stats() = %+v", n, what, st)
			}
		}
		kinds := []string{"data", "index"}
		if n > blockSize {
			kinds = append(kinds, "body")
		}
		for _, kind = range kinds {
			_, _, size := pristine()
			for _, at := range []int64{0, size / 3, size - 60, size - 57, size - 30, size - 1} {
				if at < 0 {
					continue
				}
				dir, path, _ := pristine()
				flip(t, path, at)
				padding := kind == "data" && at >= segmentHead+recordHead+int64(len("description"))+contentSize(n)
				check(fmt.Sprintf("%s: bit flipped at %d of %d", kind, at, size), dir, padding)
			}
			for _, to := range []int64{0, 10, size / 2, size - 1, size + 1, size + 100} {
				dir, path, _ := pristine()
				if err := os.Truncate(path, to); err != nil {
					t.Fatal(err)
				}
				check(fmt.Sprintf("%s: truncated to %d of %d", kind, to, size), dir, to >= size)
			}
		}
	}
}

func contentSize(n int) int64 {
	if n > blockSize {
		return 8 * bodies.BlockCount(int64(n))
	}
	return int64(n)
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	f.ReadAt(b, at)
	b[0] ^= 0x10
	f.WriteAt(b, at)
}

func TestReloadRemoves(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	put(t, s, "key", body(1, 70_000), bodies.Meta{})
	s.Close()
	old := files(t, dir)[0]
	saved, _ := os.ReadFile(old)
	s = open(t, Options{Dir: dir})
	put(t, s, "key", body(2, 70_000), bodies.Meta{})
	s.Close()
	os.WriteFile(old, saved, 0o600) // a crash before the old file was unlinked
	os.MkdirAll(filepath.Join(dir, "objects", "bodies", "77"), 0o700)
	os.WriteFile(filepath.Join(dir, "objects", "bodies", "77", "0000000000000077"), []byte("half a bo"), 0o600)
	foreign := filepath.Join(dir, "objects", "bodies", "77", "README")
	os.WriteFile(foreign, []byte("not ours"), 0o600)

	s = open(t, Options{Dir: dir})
	if _, got, err := read(s, "key"); !bytes.Equal(got, body(2, 70_000)) || err != nil {
		t.Errorf("read = %d bytes, %v; want the newer body", len(got), err)
	}
	if st := s.Stats(); st.Objects != 1 || st.Reloaded != 1 || st.Removed != 2 {
		t.Errorf("Stats() = %+v, want one object and two files removed", st)
	}
	s.Close()
	if _, err := os.Stat(foreign); err != nil {
		t.Error("a file that is not ours was removed")
	}
	if n := len(files(t, dir)); n != 2 {
		t.Errorf("%d files are left, want the object and the foreign one", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	held := t.TempDir()
	open(t, Options{Dir: held})
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"a file", Options{Dir: file, MaxBytes: 1 << 30}, "not a directory"},
		{"below a file", Options{Dir: filepath.Join(file, "x"), MaxBytes: 1 << 30}, "cannot make the directory"},
		{"not writable", Options{Dir: "/proc", MaxBytes: 1 << 30}, "/proc is not writable"},
		{"held", Options{Dir: held, MaxBytes: 1 << 30}, "in use by another process (process " + strconv.Itoa(os.Getpid()) + ")"},
		{"nothing", Options{}, "no directory given"},
		{"small", Options{Dir: file, MaxBytes: 1<<20 - 1}, "less than 1 MiB"},
		{"huge", Options{Dir: t.TempDir(), MaxBytes: 1 << 50}, "more than a pebibyte"},
		{"no memory", Options{Dir: t.TempDir(), MaxBytes: 1 << 30, MemoryBytes: -1}, "the memory size is negative"},
	}
	for _, tt := range tests {
		s, err := openStore(tt.o)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", tt.name)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
	if _, err := openStore(Options{Dir: held, MaxBytes: 1 << 30}); !errors.Is(err, ErrLocked) {
		t.Errorf("a held directory: %v, want ErrLocked", err)
	}
}

var kills = flag.Int("kills", 4, "how often TestKilled kills a process")

// TestKilled kills a process with SIGKILL while it writes, removes and describes anew, again and again. Every object that it
// had announced before is there, none that it had removed is back, and no body is wrong.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("STORE_KILL_DIR"); dir != "" {
		writeForever(t, dir)
		return
	}
	dir, rounds := t.TempDir(), *kills
	if testing.Short() { // with the race detector
		rounds = 2
	}
	for round := range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "STORE_KILL_DIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		committed, removed := map[int]bool{}, map[int]bool{}
		lines := bufio.NewScanner(out)
		hear := func() {
			switch i, err := strconv.Atoi(lines.Text()[1:]); {
			case err != nil:
			case lines.Text()[0] == '+':
				committed[i] = true
				delete(removed, i)
			case lines.Text()[0] == '?': // it is about to be removed
				delete(committed, i)
			case lines.Text()[0] == '-':
				removed[i] = true
			}
		}
		for n := 0; n < 150+round*7%100 && lines.Scan(); n++ {
			hear()
		}
		cmd.Process.Kill()
		for lines.Scan() {
			hear()
		}
		cmd.Wait()
		s := open(t, Options{Dir: dir, MaxBytes: 1 << 30})
		for i := range committed {
			if _, ok := s.Get(fmt.Sprint(i)); !ok {
				t.Errorf("round %d: object %d was committed and is gone", round, i)
			}
		}
		for i := range removed {
			if _, ok := s.Get(fmt.Sprint(i)); ok {
				t.Errorf("round %d: object %d was removed and is back", round, i)
			}
		}
		for key := range s.Keys() {
			i, _ := strconv.Atoi(key)
			if _, b, err := read(s, key); err != nil || !bytes.Equal(b, body(uint64(i), killSize(i))) {
				t.Errorf("round %d: object %d: %d bytes, %v", round, i, len(b), err)
			}
		}
		if st := s.Stats(); st.Corrupt != 0 || int(st.Reloaded) < len(committed) {
			t.Errorf("round %d: Stats() = %+v", round, st)
		}
		if n := len(files(t, dir)); n != large(s) {
			t.Errorf("round %d: %d files for %d objects", round, n, large(s))
		}
		s.Close()
	}
}

func killSize(i int) int { return []int{100, 5_000, 70_000, 400_000}[i%4] }

func writeForever(t *testing.T, dir string) {
	s := open(t, Options{Dir: dir, MaxBytes: 1 << 30})
	for i := 0; ; i++ {
		o := put(t, s, fmt.Sprint(i), body(uint64(i), killSize(i)), bodies.Meta{})
		fmt.Printf("+%d\n", i)
		if i%3 == 0 {
			_, err := s.Update(o, bodies.Meta{Data: []byte("anew")})
			check(t, err)
		}
		if gone := i - 5; i%2 == 0 && gone > 0 {
			fmt.Printf("?%d\n", gone)
			s.Delete(fmt.Sprint(gone))
			fmt.Printf("-%d\n", gone)
		}
		if i%16 == 0 {
			s.segments.turn()
		}
	}
}
