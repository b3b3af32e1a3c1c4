//go:build linux

package diskstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// forget drops the pages of a file from the page cache.
func forget(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	check(t, f.Sync())
	check(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// bodyOf returns the file that has an object's body, and the body's offset.
func bodyOf(s *store, o *object) (path string, at int64) {
	if o.file != nil {
		return s.path(o.file.id), 0
	}
	r, err := s.segments.read(o, make([]byte, o.logged()))
	if err != nil {
		panic(err)
	}
	return s.segments.path(o.seg, "data"), int64(o.at)*8 + recordHead + int64(len(r.data))
}

// ways are the ways in which bytes leave a store. Each returns those bytes.
var ways = map[string]func(v *view, off, n int64) ([]byte, error){
	"write": func(v *view, off, n int64) ([]byte, error) {
		var b bytes.Buffer
		k, err := writeRange(v, &b, off, n)
		if k != int64(b.Len()) {
			return nil, fmt.Errorf("writeRange() = %d for %d bytes", k, b.Len())
		}
		return b.Bytes(), err
	},
	"read": func(v *view, off, n int64) ([]byte, error) {
		src, err := v.Source(off, n)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(src)
	},
	"kernel": func(v *view, off, n int64) ([]byte, error) {
		src, err := v.Source(off, n)
		if err != nil {
			return nil, err
		}
		s, ok := src.(*span)
		if !ok {
			return src.(*bodies.Memory).Rest, nil
		}
		var got []byte
		for {
			if f, off, n := s.Span(); n > 0 {
				b := make([]byte, n)
				k, err := f.ReadAt(b, off) // what sendfile would send
				if got = append(got, b[:k]...); err != nil {
					return got, err
				}
				s.Advance(k)
				continue
			}
			b, err := s.Next()
			if err == io.EOF {
				return got, nil
			} else if err != nil {
				return got, err
			}
			got = append(got, b...)
			s.Advance(len(b))
		}
	},
	"blocks": func(v *view, off, n int64) ([]byte, error) {
		src, err := v.Source(off, n)
		if err != nil {
			return nil, err
		}
		s, ok := src.(*span)
		if !ok {
			return src.(*bodies.Memory).Rest, nil
		}
		var got []byte
		for {
			b, err := s.Next()
			if err == io.EOF {
				return got, nil
			} else if err != nil {
				return got, err
			}
			k := (len(b) + 1) / 2
			got = append(got, b[:k]...)
			s.Advance(k)
			s.Park()
		}
	},
}

// TestFlips turns a bit in each of 60 stored objects while the store is in use,
// and drops the pages, so that the disk is read again. All flips are found, whichever way the bytes
// leave, and no byte of a bad block is returned.
func TestFlips(t *testing.T) {
	if testing.Short() {
		t.Skip("reads in one goroutine")
	}
	for _, memory := range []int64{0, 64 << 10} {
		for way, read := range ways {
			if way != "blocks" && way != "kernel" && memory > 0 {
				continue
			}
			name := fmt.Sprintf("memory=%d %s", memory, way)
			var log strings.Builder
			s := open(t, Options{MaxBytes: 256 << 20, MemoryBytes: memory, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			m := map[string][]byte{}
			for i := range 60 {
				n := []int{40_000, 300_000, 2_000_000}[i%3]
				key := fmt.Sprint(i)
				m[key] = body(uint64(i), n)
				o := put(t, s, key, m[key], bodies.Meta{})
				for range 2 { // its file is open, or it is in memory, and blocks were checked
					v, err := s.Open(o, nil)
					check(t, err)
					if got, err := read(v.(*view), 0, o.Size()); err != nil || !bytes.Equal(got, m[key]) {
						t.Fatalf("%s: %d bytes, %v", name, len(got), err)
					}
					v.Close()
				}
			}
			r := rand.New(rand.NewPCG(1, 2))
			found := 0
			for key, want := range m {
				o, _ := s.peek(key)
				at := r.Int64N(int64(len(want)))
				path, from := bodyOf(s, o)
				flip(t, path, from+at)
				forget(t, path)
				off, n := int64(0), int64(len(want))
				if found%2 == 1 { // a range around it
					off = at - min(at, 1000)
					n = min(n-off, 2000)
				}
				v, err := s.Open(o, nil)
				var got []byte
				if err == nil {
					got, err = read(v.(*view), off, n)
					v.Close()
				}
				bad := max(0, at/blockSize*blockSize-off)
				switch {
				case err == nil && memory > 0 && len(want) <= blockSize && bytes.Equal(got, want[off:off+n]):
					found++ // it was in memory
					continue
				case !errors.Is(err, bodies.ErrCorrupt):
					t.Errorf("%s: %s, %d bytes, bit at %d, read %d+%d: %d bytes, %v", name, key, len(want), at, off, n, len(got), err)
					continue
				case !bytes.Equal(got, want[off:off+int64(len(got))]) || int64(len(got)) != bad:
					t.Errorf("%s: %s: %d bytes before the error, want %d right ones", name, key, len(got), bad)
				}
				found++
				if _, ok := s.peek(key); ok {
					t.Errorf("%s: %s is in the store still", name, key)
				}
			}
			if st := s.Stats(); found != 60 || st.Corrupt < 59 || st.Corrupt+uint64(st.Objects) != 60 {
				t.Errorf("%s: found %d of 60: %+v", name, found, st)
			}
			if n := strings.Count(log.String(), "an object is corrupt"); n != int(s.Stats().Corrupt) { // the node's log bounds them
				t.Errorf("%s: %d lines in the log", name, n)
			}
			s.Close()
		}
	}
}

// TestSpoiledLive: an object whose file can't be read as it was written is removed at its
// first use, before a byte of it is sent, and the next user finds nothing.
func TestSpoiledLive(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 1000) },
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"removed":   os.Remove,
		"a directory": func(path string) error {
			os.Remove(path)
			return os.Mkdir(path, 0o700)
		},
	} {
		for _, kept := range []bool{true, false} { // the file is open
			if kept && (name == "removed" || name == "a directory") {
				continue // it can be read for as long as it is open
			}
			s := open(t, Options{MemoryBytes: 1 << 20})
			o := put(t, s, "k", body(1, 300_000), bodies.Meta{Data: []byte("d")})
			if kept {
				v, err := s.Open(o, nil)
				check(t, err)
				v.Close()
			}
			check(t, spoil(s.path(o.file.id)))
			v, err := s.Open(o, nil)
			if err == nil {
				_, err = v.Source(0, 300_000)
				v.Close()
			}
			if !errors.Is(err, bodies.ErrCorrupt) {
				t.Errorf("%s, kept=%v: %v", name, kept, err)
			}
			if st := s.Stats(); st.Corrupt != 1 || st.Objects != 0 {
				t.Errorf("%s, kept=%v: %+v", name, kept, st)
			}
			s.flush()
			if _, err := s.Open(o, nil); !kept && err == nil || s.Stats().Corrupt != 1 {
				t.Errorf("%s: second Open() = %v", name, err)
			}
		}
	}
}

// TestSpoiledUnderOther: an object is also removed if a view that was opened under an
// older description finds it corrupt.
func TestSpoiledUnderOther(t *testing.T) {
	s := open(t, Options{})
	o := put(t, s, "k", body(1, 300_000), bodies.Meta{Data: []byte("old")})
	v, err := s.Open(o, nil)
	check(t, err)
	defer v.Close()
	if _, err := s.Update(o, bodies.Meta{Data: []byte("new")}); err != nil {
		t.Fatal(err)
	}
	flip(t, s.path(o.file.id), 200_000)
	n, err := writeRange(v, io.Discard, 0, 300_000)
	if _, ok := s.peek("k"); n != 200_000/blockSize*blockSize || !errors.Is(err, bodies.ErrCorrupt) || ok || s.Stats().Corrupt != 1 {
		t.Errorf("WriteRange() = %d, %v, still there: %v, %+v", n, err, ok, s.Stats())
	}
}

// TestFollowSpoiled: followers that lag behind read from the disk, and read no wrong
// byte there; a body that was found corrupt is not stored.
func TestFollowSpoiled(t *testing.T) {
	s := open(t, Options{})
	b := body(1, 1<<20)
	w, err := s.create("k", int64(len(b)))
	check(t, err)
	f, _ := w.Follow(t.Context())
	check(t, w.Write(t.Context(), b[:900_000]))
	path := s.path(w.id)
	flip(t, path, 3*blockSize+5)
	forget(t, path)
	got, err := follow(f, 20_000, 0)
	if !bytes.Equal(got, b[:3*blockSize]) || !errors.Is(err, bodies.ErrCorrupt) {
		t.Errorf("followed %d bytes, %v", len(got), err)
	}
	check(t, w.Write(t.Context(), b[900_000:]))
	if _, err := w.Commit(bodies.Meta{}); !errors.Is(err, bodies.ErrCorrupt) {
		t.Errorf("Commit() = %v", err)
	}
	if st := s.Stats(); st.Corrupt != 1 || st.WriteErrors != 0 || st.Objects != 0 {
		t.Errorf("%+v", st)
	}
}

// settled waits, in real time, until the next change of a file will have another time than the last.
func settled(t *testing.T, path string) {
	f, err := system{}.Open(path)
	check(t, err)
	defer f.Close()
	r, ok := f.(resident)
	for i := 0; ok && r.Changed() == 0; i++ {
		if i > 1e6 {
			t.Fatal("the file keeps changing")
		}
	}
}

// TestTrust: the kernel sends a checked block while it stays in memory and nobody writes to the file, for
// up to a minute.
func TestTrust(t *testing.T) {
	for _, n := range []int64{2 * blockSize, 5*blockSize + 1000, blockSize + 1, 4*blockSize - 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testTrust(t, n) }) })
	}
}

func testTrust(t *testing.T, n int64) {
	s := open(t, Options{MemoryBytes: 1 << 20})
	whole := body(1, int(n))
	o := put(t, s, "k", whole, bodies.Meta{})
	settled(t, s.path(o.file.id))
	spans := func() (trusted int64) {
		t.Helper()
		v, err := s.Open(o, nil)
		check(t, err)
		defer v.Close()
		src, err := v.Source(0, n)
		check(t, err)
		sp := src.(*span)
		for at := int64(0); ; {
			f, off, k := sp.Span()
			b := make([]byte, k)
			if k > 0 {
				_, err = f.ReadAt(b, off)
				trusted += k
			} else if b, err = sp.Next(); err == io.EOF {
				if at != n {
					t.Errorf("%d bytes of %d", at, n)
				}
				return trusted
			}
			check(t, err)
			if !bytes.Equal(b, whole[at:at+int64(len(b))]) {
				t.Errorf("wrong bytes from %d on", at)
			}
			at += int64(len(b))
			sp.Advance(len(b))
		}
	}
	if got := spans(); got != 0 {
		t.Errorf("%d bytes were trusted unread", got)
	}
	want := n
	if got := spans(); got == 0 {
		t.Skip("the system doesn't tell what is in memory")
	} else if got != want {
		t.Errorf("%d bytes were trusted, want %d", got, want)
	}
	flip(t, s.path(o.file.id), n-1)
	flip(t, s.path(o.file.id), n-1)
	if got := spans(); got != 0 {
		t.Errorf("%d bytes were trusted of a file that was written to", got)
	}
	settled(t, s.path(o.file.id))
	if spans(); spans() != want {
		t.Error("the body is not trusted after another check")
	}
	time.Sleep(trustFor + time.Second)
	if got := spans(); got != 0 {
		t.Errorf("%d bytes were trusted after %v", got, trustFor)
	}
	spans()
	forget(t, s.path(o.file.id))
	if got := spans(); got != 0 {
		t.Errorf("%d bytes were trusted that had left memory", got)
	}
	if spans(); spans() != want {
		t.Error("the body is not trusted again")
	}
	flip(t, s.path(o.file.id), want-1)
	v, err := s.Open(o, nil)
	check(t, err)
	defer v.Close()
	if sent, err := writeRange(v, io.Discard, 0, n); !errors.Is(err, bodies.ErrCorrupt) || sent > (want-1)/blockSize*blockSize {
		t.Errorf("%d bytes of a block that was changed after its check, %v", sent, err)
	}
}
