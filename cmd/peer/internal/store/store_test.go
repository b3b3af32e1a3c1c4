package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// mirror counts hooks as a digest would.
type mirror struct {
	mu             sync.Mutex
	stored, listed map[string]int
	bad            []string
}

func newMirror() *mirror { return &mirror{stored: map[string]int{}, listed: map[string]int{}} }

func (m *mirror) add(set map[string]int, key string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set[key] += n; set[key] == 0 {
		delete(set, key)
	} else if set[key] < 0 {
		m.bad = append(m.bad, key)
	}
}

func (m *mirror) hooks() Hooks {
	return Hooks{
		Stored:   func(k string) { m.add(m.stored, k, 1) },
		Evicted:  func(k string) { m.add(m.stored, k, -1) },
		Listed:   func(k string) { m.add(m.listed, k, 1) },
		Unlisted: func(k string) { m.add(m.listed, k, -1) },
	}
}

func (m *mirror) count(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listed[key]
}

// check compares the mirror with what the store holds. Nothing may be under way.
func (m *mirror) check(t *testing.T, s *Store) {
	t.Helper()
	s.index.CleanUp()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.bad) > 0 {
		t.Errorf("%d removals came before their insertions, the first of %q", len(m.bad), m.bad[0])
	}
	held, listed := 0, 0
	for o := range s.index.Values() {
		key := o.Key()
		held++
		if m.stored[key] != 1 {
			t.Errorf("stored[%q] = %d, want 1", key, m.stored[key])
		}
		want := 0
		if o.Listed() {
			want = 1
			listed++
		}
		if m.listed[key] != want {
			t.Errorf("listed[%q] = %d, want %d", key, m.listed[key], want)
		}
	}
	if len(m.stored) != held || len(m.listed) != listed {
		t.Errorf("mirror holds %d keys, %d listed; the store %d, %d", len(m.stored), len(m.listed), held, listed)
	}
	if got := s.Stats().Listed; got != listed {
		t.Errorf("Stats().Listed = %d, want %d", got, listed)
	}
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	s, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func body(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := 0; i < n; i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[i:], word[:])
	}
	return b
}

func put(t testing.TB, s *Store, key string, b []byte, m Meta) *Object {
	t.Helper()
	w, err := s.Create(key, int64(len(b)))
	if err != nil {
		t.Fatalf("Create(%q): %v", key, err)
	}
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatalf("Write(%q): %v", key, err)
	}
	o, err := w.Commit(m)
	if err != nil {
		t.Fatalf("Commit(%q): %v", key, err)
	}
	return o
}

func read(s *Store, key string) (data, b []byte, err error) {
	o, ok := s.Get(key)
	if !ok {
		return nil, nil, ErrGone
	}
	v, err := s.Open(o, Serve)
	if err != nil {
		return nil, nil, err
	}
	defer v.Close()
	var buf bytes.Buffer
	_, err = writeRange(&v, &buf, 0, v.Size())
	return v.Value().([]byte), buf.Bytes(), err
}

// writeRange writes a part of a body, as it comes from Source.
func writeRange(v *View, w io.Writer, off, n int64) (int64, error) {
	src, err := v.Source(off, n)
	if err != nil {
		return 0, err
	}
	return io.Copy(w, src)
}

// sizes are body lengths around every boundary that the code knows.
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
				put(t, s, fmt.Sprint(n), body(uint64(i), n), Meta{Data: fmt.Appendf(nil, "meta %d", n), ListUntil: until})
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

func checkSizes(t *testing.T, s *Store) {
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
	put(t, s, "k", b, Meta{})
	s.Close()
	s = open(t, Options{Dir: dir})
	for _, r := range [][2]int64{{0, 0}, {0, 1}, {n - 1, 1}, {blockSize - 1, 2}, {blockSize, blockSize}, {5, n - 5}, {0, n}, {7, 9}} {
		o, _ := s.Get("k")
		v, err := s.Open(o, Serve)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		k, err := writeRange(&v, &got, r[0], r[1])
		if err != nil || k != r[1] || !bytes.Equal(got.Bytes(), b[r[0]:r[0]+r[1]]) {
			t.Errorf("WriteRange(%d, %d) = %d, %v", r[0], r[1], k, err)
		}
		if _, err := writeRange(&v, io.Discard, r[0], n+1); err == nil {
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
	first := put(t, s, "k", body(1, 1000), Meta{Data: []byte("a rather long first description"), ListUntil: until})
	for _, data := range []string{"short", strings.Repeat("long ", 1000), ""} {
		o, _ := s.Get("k")
		if _, err := s.Update(o, Meta{Data: []byte(data), ListUntil: until}); err != nil {
			t.Fatalf("Update(%d bytes): %v", len(data), err)
		}
		got, b, err := read(s, "k")
		if string(got) != data || !bytes.Equal(b, body(1, 1000)) || err != nil {
			t.Errorf("after Update(%d bytes): %d bytes, %v", len(data), len(got), err)
		}
		m.check(t, s)
	}
	if _, err := s.Update(first, Meta{}); !errors.Is(err, ErrGone) {
		t.Errorf("Update of a superseded object: %v, want ErrGone", err)
	}
	if s.DeleteObject(first) {
		t.Error("DeleteObject of a superseded object removed its successor")
	}
	o, _ := s.Get("k")
	s.Update(o, Meta{Data: []byte("last")})
	s.Close()
	s = open(t, Options{Dir: dir})
	if got, b, err := read(s, "k"); string(got) != "last" || !bytes.Equal(b, body(1, 1000)) || err != nil {
		t.Errorf("after reload: %q, %v", got, err)
	}
	if s.Delete("nothing") || !s.Delete("k") || s.Delete("k") {
		t.Error("Delete reports wrongly what it removed")
	}
}

func TestBounded(t *testing.T) {
	m := newMirror()
	const limit = 4 << 20
	s := open(t, Options{MaxBytes: limit, Hooks: m.hooks()})
	for i := range 300 {
		put(t, s, fmt.Sprint(i), body(uint64(i), 50_000), Meta{ListUntil: time.Now().Add(time.Hour)})
	}
	m.check(t, s)
	st := s.Stats()
	if st.Bytes > limit || st.Bytes < limit/2 || st.Evictions == 0 {
		t.Errorf("Stats() = %+v, want at most %d bytes", st, limit)
	}
	s.Close()
	var disk int64
	filepath.Walk(s.opt.Dir, func(_ string, st os.FileInfo, err error) error {
		if err == nil && st.Mode().IsRegular() {
			disk += (st.Size() + unit - 1) / unit * unit
		}
		return nil
	})
	if disk > limit+2*unit {
		t.Errorf("%d bytes on disk, want at most %d", disk, limit)
	}
	if _, err := s.Create("big", limit); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Create of %d bytes: %v, want ErrTooLarge", limit, err)
	}
}

// TestReserve: what is being written takes room from what is held.
func TestReserve(t *testing.T) {
	s := open(t, Options{MaxBytes: 8 << 20})
	for i := range 100 {
		put(t, s, fmt.Sprint(i), body(uint64(i), 70_000), Meta{})
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
	s.trash.drain()
	if files, _ := os.ReadDir(filepath.Join(s.opt.Dir, "tmp")); len(files) != 0 {
		t.Errorf("%d temporary files are left", len(files))
	}
}

func TestUnlistsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror()
		s, err := Open(Options{Dir: t.TempDir(), MaxBytes: 1 << 20, Hooks: m.hooks()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := time.Now()
		for i := range 50 {
			put(t, s, fmt.Sprint(i), nil, Meta{ListUntil: start.Add(time.Duration(50-i) * time.Minute)})
		}
		put(t, s, "never", nil, Meta{})
		put(t, s, "over", nil, Meta{ListUntil: start})
		for i := range 50 {
			if got := s.Stats().Listed; got != 50-i {
				t.Fatalf("after %v %d objects are listed, want %d", time.Since(start), got, 50-i)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		m.check(t, s)
		o, _ := s.Get("7") // a refreshed object comes back
		if _, err := s.Update(o, Meta{ListUntil: time.Now().Add(2 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if m.check(t, s); m.count("7") != 1 {
			t.Error("a refreshed object is not listed")
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if m.check(t, s); s.Stats().Listed != 0 {
			t.Errorf("%d objects are listed past their time", s.Stats().Listed)
		}
		if n := len(s.exp.queue); n != 0 {
			t.Errorf("%d objects wait for their time still", n)
		}
	})
}

// TestHammer has writers, refreshers, deleters and readers at the same few keys
// and a store that evicts, and compares the mirror with the store at rest.
func TestHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMirror()
		s, err := Open(Options{Dir: t.TempDir(), MaxBytes: 1 << 20, MemoryBytes: 256 << 10, Hooks: m.hooks()})
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
		large := 0
		for o := range s.index.Values() {
			if !o.is(objSmall) {
				large++
			}
		}
		st := s.Stats()
		if st.Evictions == 0 || st.Corrupt != 0 || st.WriteErrors != 0 || st.Listed == 0 || st.Listed == st.Objects {
			t.Errorf("Stats() = %+v", st)
		}
		s.Close()
		if n := len(files(t, s.opt.Dir)); n != large {
			t.Errorf("%d files for %d objects", n, large)
		}
	})
}

func hammer(t *testing.T, s *Store, r *rand.Rand) {
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
			s.Update(o, Meta{Data: []byte(key), ListUntil: until})
		case ok && i%3 == 1:
			data, b, err := read(s, key)
			if err == nil && (string(data) != key || len(b) < 1000 || !bytes.HasPrefix(b, []byte(key+" "))) {
				t.Errorf("read(%q) = %q, %d bytes", key, data, len(b))
			} else if err != nil && !errors.Is(err, ErrGone) {
				t.Errorf("read(%q): %v", key, err)
			}
		case i%5 == 0:
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
		default:
			b := make([]byte, 1000+r.IntN(20_000))
			copy(b, key+" ")
			put(t, s, key, b, Meta{Copied: r.IntN(2) == 0, Data: []byte(key), ListUntil: until})
		}
	}
}

// What is listed, and since when and until when, is known again after a start.
func TestListed(t *testing.T) {
	dir := t.TempDir()
	until, since := time.Now().Add(time.Hour).Round(0), time.Now().Add(-time.Minute).Truncate(time.Second)
	s := open(t, Options{Dir: dir, MaxBytes: 1 << 20})
	put(t, s, "listed", body(1, 10), Meta{ListUntil: until, Generated: since})
	put(t, s, "not listed", body(2, 10), Meta{Generated: since})
	check := func(s *Store) {
		t.Helper()
		n := 0
		for o := range s.Listed() {
			if n++; o.Key() != "listed" || !o.ListUntil().Equal(until) || !o.Generated().Equal(since) {
				t.Errorf("%s, until %v, generated %v", o.Key(), o.ListUntil(), o.Generated())
			}
		}
		if n != 1 {
			t.Errorf("%d objects are listed, want 1", n)
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, Options{Dir: dir, MaxBytes: 1 << 20})
	check(s)
	s.Delete("listed")
	for o := range s.Listed() {
		t.Errorf("%s is listed", o.Key())
	}
}

// TestClockJumps: what is listed stays so for as long as it was to be, whichever way
// the wall clock jumps meanwhile; a time of writing that is still to come makes an
// object unlisted at a start, for nobody knows what the clock said then.
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour, -30 * time.Minute, 30 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var ahead time.Duration
			now := func() time.Time { return time.Now().Add(ahead).Round(0) }
			m := newMirror()
			dir := t.TempDir()
			s, err := Open(Options{Dir: dir, MaxBytes: 1 << 20, Hooks: m.hooks(), Now: now})
			if err != nil {
				t.Fatal(err)
			}
			put(t, s, "before", nil, Meta{ListUntil: now().Add(time.Hour)})
			o := put(t, s, "renewed", nil, Meta{ListUntil: now().Add(time.Hour)})
			put(t, s, "far", nil, Meta{ListUntil: now().Add(1<<63 - 1)})
			ahead = jump
			put(t, s, "after", nil, Meta{ListUntil: now().Add(time.Hour)})
			if _, err := s.Update(o, Meta{ListUntil: now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			for _, wait := range []time.Duration{59 * time.Minute, 2 * time.Minute} {
				time.Sleep(wait)
				synctest.Wait()
				want := 0
				if wait == 59*time.Minute {
					want = 1
				}
				for _, key := range []string{"before", "renewed", "after"} {
					if got := m.count(key); got != want {
						t.Errorf("jump %v: %q listed: %d, want %d, %v later", jump, key, got, want, wait)
					}
				}
			}
			put(t, s, "kept", nil, Meta{ListUntil: now().Add(time.Hour)})
			s.Close()

			ahead = 0 // a clock that was ahead is put right
			m = newMirror()
			s, err = Open(Options{Dir: dir, MaxBytes: 1 << 20, Hooks: m.hooks(), Now: now})
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			if jump > 0 || jump == -24*time.Hour { // written in the future; listed until yesterday
				want = 0
			}
			if got := m.count("kept"); got != want {
				t.Errorf("jump %v: listed after a start: %d, want %d", jump, got, want)
			}
			m.check(t, s)
			s.Close()
		})
	}
}
