package diskstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// sizes are body lengths around every boundary in the code.
var sizes = []int{0, 1, 100, blockSize - 1, blockSize, blockSize + 1, keptBody - 1, keptBody, keptBody + 1,
	3*blockSize + 17, 1 << 20, 3 << 20}

func TestRoundTrip(t *testing.T) {
	for _, memory := range []int64{0, 8 << 20} {
		t.Run(fmt.Sprintf("memory=%d", memory), func(t *testing.T) {
			m := newMirror()
			dir := t.TempDir()
			s := open(t, Options{Dir: dir, MemoryBytes: memory, Hooks: m.hooks()})
			until := time.Now().Add(time.Hour)
			for i, n := range sizes {
				put(t, s, fmt.Sprint(n), body(uint64(i), n), bodies.Meta{Data: fmt.Appendf(nil, "meta %d", n), ListUntil: until})
			}
			checkSizes(t, s)
			m.check(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			again := newMirror()
			s = open(t, Options{Dir: dir, MemoryBytes: memory, Hooks: again.hooks()})
			checkSizes(t, s)
			checkSizes(t, s) // now open, or in memory
			again.check(t, s)
			if st := s.Stats(); st.Reloaded != uint64(len(sizes)) || st.Listed != len(sizes) || st.Removed != 0 {
				t.Errorf("after reload Stats() = %+v", st)
			}
		})
	}
}

func checkSizes(t *testing.T, s *store) {
	t.Helper()
	for i, n := range sizes {
		data, b, err := read(s, fmt.Sprint(n))
		if want := fmt.Sprintf("meta %d", n); err != nil || string(data) != want || !bytes.Equal(b, body(uint64(i), n)) {
			t.Errorf("read(%d) = %q, %d bytes, %v", n, data, len(b), err)
		}
	}
}

func TestWriteRange(t *testing.T) {
	dir := t.TempDir()
	const n = 3*blockSize + 17
	b := body(1, n)
	s := open(t, Options{Dir: dir})
	put(t, s, "k", b, bodies.Meta{})
	s.Close()
	s = open(t, Options{Dir: dir})
	for _, r := range [][2]int64{{0, 0}, {0, 1}, {n - 1, 1}, {blockSize - 1, 2}, {blockSize, blockSize}, {5, n - 5}, {0, n}, {7, 9}} {
		o, _ := s.Get("k")
		v, err := s.Open(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		k, err := writeRange(v, &got, r[0], r[1])
		if err != nil || k != r[1] || !bytes.Equal(got.Bytes(), b[r[0]:r[0]+r[1]]) {
			t.Errorf("WriteRange(%d, %d) = %d, %v", r[0], r[1], k, err)
		}
		if _, err := writeRange(v, io.Discard, r[0], n+1); err == nil {
			t.Errorf("WriteRange past the end succeeded")
		}
		v.Close()
	}
}

func TestUpdate(t *testing.T) {
	m := newMirror()
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Hooks: m.hooks(), MemoryBytes: 1 << 20})
	until := time.Now().Add(time.Hour)
	first := put(t, s, "k", body(1, 1000), bodies.Meta{Data: []byte("a rather long first description"), ListUntil: until})
	for _, data := range []string{"short", strings.Repeat("long ", 1000), ""} {
		o, _ := s.Get("k")
		if _, err := s.Update(o, bodies.Meta{Data: []byte(data), ListUntil: until}); err != nil {
			t.Fatalf("Update(%d bytes): %v", len(data), err)
		}
		got, b, err := read(s, "k")
		if string(got) != data || !bytes.Equal(b, body(1, 1000)) || err != nil {
			t.Errorf("after Update(%d bytes): %d bytes, %v", len(data), len(got), err)
		}
		m.check(t, s)
	}
	if _, err := s.Update(first, bodies.Meta{}); !errors.Is(err, bodies.ErrGone) {
		t.Errorf("Update of a superseded object: %v, want bodies.ErrGone", err)
	}
	if s.DeleteObject(first) {
		t.Error("DeleteObject of a superseded object removed its successor")
	}
	o, _ := s.Get("k")
	s.Update(o, bodies.Meta{Data: []byte("last")})
	s.Close()
	s = open(t, Options{Dir: dir})
	if got, b, err := read(s, "k"); string(got) != "last" || !bytes.Equal(b, body(1, 1000)) || err != nil {
		t.Errorf("after reload: %q, %v", got, err)
	}
	if s.Delete("nothing") || !s.Delete("k") || s.Delete("k") {
		t.Error("Delete reports wrongly what it removed")
	}
}

// TestReserve: bodies being written take room from stored objects.
func TestReserve(t *testing.T) {
	s := open(t, Options{MaxBytes: 8 << 20})
	for i := range 100 {
		put(t, s, fmt.Sprint(i), body(uint64(i), 70_000), bodies.Meta{})
	}
	w, err := s.Create("big", -1)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := w.Write(t.Context(), body(1, 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	s.index.CleanUp()
	if st := s.Stats(); st.WritingBytes < 2_000_000 || st.Bytes+st.WritingBytes > st.MaxBytes {
		t.Errorf("while writing Stats() = %+v", st)
	}
	w.Abort()
	if st := s.Stats(); st.WritingBytes != 0 {
		t.Errorf("after Abort %d bytes are reserved", st.WritingBytes)
	}
	s.flush()
	if files := files(t, s.opt.Dir); len(files) != large(s) {
		t.Errorf("%d files are left", len(files))
	}
}

// TestHammer has writers, refreshers, deleters and readers work on the same few keys
// of a store that evicts, and compares the mirror with the store at rest.
func TestHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror()
		s, err := openStore(Options{Dir: t.TempDir(), MaxBytes: 1 << 20, MemoryBytes: 256 << 10, Hooks: m.hooks()})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() { hammer(t, s, rand.New(rand.NewPCG(uint64(g), 7))) })
		}
		wg.Wait()
		time.Sleep(time.Minute) // whatever is due becomes unlisted
		synctest.Wait()
		m.check(t, s)
		want := large(s)
		st := s.Stats()
		if st.Evictions == 0 || st.Corrupt != 0 || st.WriteErrors != 0 || st.Listed == 0 || st.Listed == st.Objects {
			t.Errorf("Stats() = %+v", st)
		}
		s.Close()
		if n := len(files(t, s.opt.Dir)); n != want {
			t.Errorf("%d files for %d objects", n, want)
		}
	})
}

func hammer(t *testing.T, s *store, r *rand.Rand) {
	for i := range 300 {
		key := fmt.Sprint(r.IntN(150))
		until := time.Now().Add(time.Duration(r.IntN(20)-2) * time.Millisecond)
		if i%4 == 0 {
			until = time.Now().Add(time.Hour)
		}
		switch o, ok := s.Get(key); {
		case r.IntN(10) == 0:
			s.Delete(key)
		case ok && i%3 == 0:
			s.Update(o, bodies.Meta{Data: []byte(key), ListUntil: until})
		case ok && i%3 == 1:
			data, b, err := read(s, key)
			if err == nil && (string(data) != key || len(b) < 1000 || !bytes.HasPrefix(b, []byte(key+" "))) {
				t.Errorf("read(%q) = %q, %d bytes", key, data, len(b))
			} else if err != nil && !errors.Is(err, bodies.ErrGone) {
				t.Errorf("read(%q): %v", key, err)
			}
		case i%5 == 0:
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
		default:
			b := make([]byte, 1000+r.IntN(20_000))
			copy(b, key+" ")
			put(t, s, key, b, bodies.Meta{Copied: r.IntN(2) == 0, Data: []byte(key), ListUntil: until})
		}
	}
}

// TestReadAfterClose: a request that outlives the store can still read what it had opened, and nothing stays open then.
func TestReadAfterClose(t *testing.T) {
	s := open(t, Options{})
	o := put(t, s, "k", body(1, 300_000), bodies.Meta{})
	v, err := s.Open(o, nil)
	check(t, err)
	check(t, s.Close())
	var b bytes.Buffer
	if _, err := writeRange(v, &b, 0, 300_000); err != nil || !bytes.Equal(b.Bytes(), body(1, 300_000)) {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	f := v.(*view).f
	v.Close()
	if n := f.n.Load(); n != 0 {
		t.Errorf("%d references to the file are left", n)
	}
}
