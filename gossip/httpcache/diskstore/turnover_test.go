package diskstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// used returns the bytes of the files of objects.
func used(t testing.TB, dir string) (n int64) {
	t.Helper()
	filepath.WalkDir(filepath.Join(dir, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

// TestTurnover passes twenty times the size of a store through it: small and large objects, new
// and replaced, removed and updated. Its files never exceed its bound, its objects are
// right, and a start finds the same objects.
func TestTurnover(t *testing.T) {
	const limit = 4 << 20
	m := newMirror()
	s := open(t, Options{MaxBytes: limit, MemoryBytes: 128 << 10, Hooks: m.hooks()})
	r := rand.New(rand.NewPCG(3, 4))
	version := map[string]uint64{}
	gone := map[string]bool{} // removed, and not stored again
	length := func(v uint64) int { return []int{300, 1000, 3000, 9000, 30_000}[v%5] + int(v%97) }
	right := func(s *store, key string) error {
		o, ok := s.peek(key)
		if !ok {
			return nil
		}
		v, err := s.Open(o, nil)
		if errors.Is(err, bodies.ErrGone) {
			return nil
		} else if err != nil {
			return err
		}
		defer v.Close()
		var b bytes.Buffer
		if _, err := writeRange(v, &b, 0, o.Size()); err != nil {
			return err
		}
		if want := version[key]; !bytes.Equal(b.Bytes(), body(want, length(want))) {
			return fmt.Errorf("other bytes than those of version %d", want)
		}
		return nil
	}
	written, most := int64(0), int64(0)
	for i := uint64(1); written < 20*limit; i++ {
		key := fmt.Sprint("key ", r.IntN(20)*r.IntN(400))
		switch {
		case r.IntN(8) == 0:
			s.Delete(key)
			gone[key] = true
		case r.IntN(8) == 0:
			if o, ok := s.Get(key); ok {
				if _, err := s.Update(o, bodies.Meta{Data: body(i, r.IntN(500)), Copied: i%2 == 0}); err != nil && !errors.Is(err, bodies.ErrGone) {
					t.Fatal(err)
				}
			}
		case r.IntN(3) > 0:
			s.Get(key)
			if err := right(s, key); err != nil {
				t.Fatalf("%q: %v", key, err)
			}
		default:
			version[key] = i
			delete(gone, key)
			put(t, s, key, body(i, length(i)), bodies.Meta{Data: []byte(key), Copied: i%3 == 0})
			written += int64(length(i))
		}
		if i%50 == 0 {
			s.index.CleanUp()
			s.flush()
			n := used(t, s.opt.Dir)
			if most = max(most, n); n > limit {
				t.Fatalf("after %d bytes the files have %d, of %d", written, n, limit)
			}
		}
	}
	s.segments.collect() // it may be behind
	m.check(t, s)
	st := s.Stats()
	if st.Bytes < limit/2 || st.GarbageBytes < 0 || st.Bytes+st.GarbageBytes > limit || st.Corrupt != 0 || st.WriteErrors != 0 {
		t.Errorf("Stats() = %+v, at most %d bytes in files", st, most)
	}
	if n := len(s.segments.all); n > 70 {
		t.Errorf("%d segments", n)
	}
	held := map[string]bool{}
	for key := range s.Keys() {
		if err := right(s, key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		if gone[key] {
			t.Errorf("%q was removed and is there", key)
		}
	}
	s.Close() // turnover may be under way until here
	for key := range s.Keys() {
		held[key] = true
	}
	again := newMirror()
	s = open(t, Options{Dir: s.opt.Dir, MaxBytes: limit, Hooks: again.hooks()})
	for key := range held {
		if err := right(s, key); err != nil {
			t.Errorf("after a start, %q: %v", key, err)
		}
	}
	for key := range s.Keys() {
		if !held[key] {
			t.Errorf("%q is back", key)
		}
	}
	if st := s.Stats(); st.Reloaded != uint64(len(held)) || st.Removed != 0 { // it may evict some since
		t.Errorf("%d objects were held: %+v", len(held), st)
	}
	again.check(t, s)
}

// TestTurnoverBeside has readers and writers work on few objects while their segments are
// turned over all the time.
func TestTurnoverBeside(t *testing.T) {
	s := open(t, Options{MaxBytes: 1 << 20})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 9))
			for range 3000 {
				key := fmt.Sprint(r.IntN(60))
				switch r.IntN(4) {
				case 0:
					put(t, s, key, bytes.Repeat([]byte(key+" "), 100+r.IntN(2000)), bodies.Meta{Data: []byte(key)})
				case 1:
					if o, ok := s.Get(key); ok {
						s.Update(o, bodies.Meta{Data: []byte(key)})
					}
				case 2:
					s.segments.turn()
				default:
					data, b, err := read(s, key)
					if errors.Is(err, bodies.ErrGone) {
						continue
					}
					if err != nil || string(data) != key || !bytes.HasPrefix(b, []byte(key+" ")) {
						t.Errorf("%q: %q, %d bytes, %v", key, data, len(b), err)
					}
				}
			}
		})
	}
	wg.Wait()
	s.index.CleanUp()
	st := s.Stats()
	s.Close() // turnover may be at work, and each mark has a reference to its segment
	if st.Corrupt != 0 || st.WriteErrors != 0 || st.Bytes+st.GarbageBytes > st.MaxBytes {
		t.Errorf("Stats() = %+v", st)
	}
	var held int64
	for o := range s.index.Values() {
		held += o.bytes()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live, total := int64(0), int64(0)
	for _, sg := range s.segments.all {
		live += sg.live
		total += sg.size
		if sg.n.Load() != 0 {
			t.Errorf("segment %d: %d references", sg.id, sg.n.Load())
		}
	}
	if live > held || live != s.segments.live || total != s.segments.total {
		t.Errorf("segments have %d bytes of objects, %d in all; the account %d and %d; the index %d", live, total, s.segments.live, s.segments.total, held)
	}
}

// TestTurnoverMemory: objects that have left a store take no memory.
func TestTurnoverMemory(t *testing.T) {
	s := open(t, Options{MaxBytes: 4 << 20})
	heapNow := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	n := 0
	pass := func(capacities int) {
		for range capacities * (4 << 20) / 2200 {
			put(t, s, fmt.Sprint(n), body(uint64(n), 2000), bodies.Meta{})
			n++
		}
		s.index.CleanUp()
	}
	pass(3)
	before := heapNow()
	pass(20)
	grown := heapNow() - before
	for range 200 { // turnover may be at work, which has buffers
		if grown <= 512<<10 {
			return
		}
		time.Sleep(50 * time.Millisecond)
		grown = heapNow() - before
	}
	t.Errorf("%d bytes more after 20 turnovers", grown)
}

// TestMovedAndRemoved: an object that was moved and then removed does not come back, though
// its first segment is still there when the process is killed.
func TestMovedAndRemoved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	g := s.segments
	for i := range 10 {
		put(t, s, fmt.Sprint(i), body(uint64(i), 1000), bodies.Meta{Data: []byte("data")})
	}
	from := g.head
	s.appending.Lock()
	g.head = nil
	s.appending.Unlock()
	i := 0
	g.objects(from, from.entries, make([]byte, 4096), func(o *object, b []byte) bool {
		if err := g.moveObject(from, o, b); err != nil || o.seg == from.id {
			t.Fatalf("object %d was not moved: %v", i, err)
		}
		if i%2 == 0 {
			s.Delete(o.Key())
		}
		i++
		return i < 6
	})
	s.flush()
	killed := filepath.Join(t.TempDir(), "store")
	check(t, os.CopyFS(killed, os.DirFS(dir)))
	s = open(t, Options{Dir: killed})
	for i := range 10 {
		_, got, err := read(s, fmt.Sprint(i))
		if gone := i < 6 && i%2 == 0; gone != errors.Is(err, bodies.ErrGone) || !gone && !bytes.Equal(got, body(uint64(i), 1000)) {
			t.Errorf("object %d: %d bytes, %v", i, len(got), err)
		}
	}
	if st := s.Stats(); st.Objects != 7 || st.Removed != 0 {
		t.Errorf("Stats() = %+v", st)
	}
}

// TestDropKeepsFiles: a segment that is dropped costs the bodies in it. Objects whose bodies are files are kept, also
// after a start, if their records take no more than half of it.
func TestDropKeepsFiles(t *testing.T) {
	for _, small := range []int{20, 0} { // objects whose bodies are in the log
		dir := t.TempDir()
		s := open(t, Options{Dir: dir})
		for i := range 20 {
			put(t, s, fmt.Sprint("file ", i), body(uint64(i), 100_000), bodies.Meta{})
		}
		for i := range small {
			put(t, s, fmt.Sprint("small ", i), body(uint64(i), 1000), bodies.Meta{})
		}
		g := s.segments
		s.appending.Lock()
		g.head = nil
		before := g.total
		if sg := g.victim(true); sg == nil || !g.dropAll(sg, make([]byte, 64<<10)) {
			t.Error("the segment was not dropped")
		}
		after := g.total
		s.appending.Unlock()
		s.flush()
		for start := range 2 {
			files := 0
			for key := range s.Keys() {
				var i int
				if n, _ := fmt.Sscanf(key, "file %d", &i); n == 0 {
					t.Errorf("start %d: %s is there", start, key)
				} else if _, got, err := read(s, key); err != nil || !bytes.Equal(got, body(uint64(i), 100_000)) {
					t.Errorf("start %d: %s: %d bytes, %v", start, key, len(got), err)
				}
				files++
			}
			if small > 0 && files != 20 || small == 0 && (files < 8 || files > 10) || after > before/2+2*segmentHead {
				t.Errorf("%d small objects, start %d: %d files are left, segments of %d bytes after %d", small, start, files, after, before)
			}
			s.Close()
			s = open(t, Options{Dir: dir})
		}
	}
}

// TestTornTail: broken bytes that a crash or the disk leaves at the end of an index are cut off.
// The objects before them are found, and later ones are kept.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	for i := range 5 {
		put(t, s, fmt.Sprint(i), body(uint64(i), 1000), bodies.Meta{})
	}
	last := s.segments.head.entries - entrySize(0, 1, false)
	s.Close()
	index := s.segments.path(1, "index")
	whole, err := os.ReadFile(index)
	check(t, err)
	for _, tail := range [][]byte{whole[last : last+10], whole[last : len(whole)-1], make([]byte, 1), make([]byte, 4096)} {
		check(t, os.WriteFile(index, append(bytes.Clone(whole[:last]), tail...), 0o600))
		s := open(t, Options{Dir: dir})
		if st := s.Stats(); st.Objects != 4 || st.Removed != 1 {
			t.Errorf("%d bytes: %+v", len(tail), st)
		}
		put(t, s, "new", body(9, 2000), bodies.Meta{})
		s.Close()
		s = open(t, Options{Dir: dir})
		if st := s.Stats(); st.Objects != 5 || st.Removed != 0 {
			t.Errorf("%d bytes, a start later: %+v", len(tail), st)
		}
		for i := range 4 {
			if _, got, err := read(s, fmt.Sprint(i)); err != nil || !bytes.Equal(got, body(uint64(i), 1000)) {
				t.Errorf("object %d: %d bytes, %v", i, len(got), err)
			}
		}
		if _, got, err := read(s, "new"); err != nil || !bytes.Equal(got, body(9, 2000)) {
			t.Errorf("the new object: %d bytes, %v", len(got), err)
		}
		s.Close()
		check(t, os.RemoveAll(s.segments.path(2, "index")))
	}
}

// TestHoleInIndex: a power cut leaves zeros instead of a page of an index, and keeps the later pages. The entries
// before the hole are found, and later ones are kept. A bit that flips there costs the segment: a removal may be lost.
func TestHoleInIndex(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	for i := range 200 {
		put(t, s, fmt.Sprint("key ", i), body(uint64(i), 100), bodies.Meta{})
	}
	s.Delete("key 3") // its removal is at the end
	s.Close()
	index := s.segments.path(1, "index")
	whole, err := os.ReadFile(index)
	check(t, err)
	data, err := os.ReadFile(s.segments.path(1, "data"))
	check(t, err)
	const page = 4096
	for _, from := range []int{page, 2 * page, segmentHead + 5*72, segmentHead + 170*72} { // a page, or the rest of one
		b := bytes.Clone(whole)
		clear(b[from : (from/page+1)*page])
		check(t, os.WriteFile(index, b, 0o600))
		check(t, os.WriteFile(s.segments.path(1, "data"), data, 0o600))
		before := (from - segmentHead) / 72
		for start := range 2 {
			s := open(t, Options{Dir: dir})
			if st := s.Stats(); st.Objects != before+start || st.Removed != uint64(1-start) {
				t.Errorf("zeros from %d on, start %d: want %d objects: %+v", from, start, before+start, st)
			}
			for i := range before {
				if _, got, err := read(s, fmt.Sprint("key ", i)); err != nil || !bytes.Equal(got, body(uint64(i), 100)) {
					t.Fatalf("zeros from %d on: object %d: %d bytes, %v", from, i, len(got), err)
				}
			}
			if start == 0 {
				put(t, s, "new", body(9, 100), bodies.Meta{})
			}
			s.Close()
		}
	}
	check(t, os.WriteFile(index, whole, 0o600))
	flip(t, index, page)
	s = open(t, Options{Dir: dir})
	if st := s.Stats(); st.Objects != 0 {
		t.Errorf("a flipped bit: %+v", st)
	}
}

// TestInspectNothing: a directory that is not a store's is an error, and one with characters of patterns is read.
func TestInspectNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*c")
	for made, want := range map[bool]int{false: 1, true: 0} {
		if made {
			put(t, open(t, Options{Dir: dir}), "key", body(1, 10), bodies.Meta{})
		}
		failed, found := 0, 0
		for h, err := range Inspect(dir) {
			if err != nil {
				failed++
			} else if h.Key == "key" {
				found++
			}
		}
		if failed != want || found != 1-want {
			t.Errorf("Inspect(%q), made %v: %d errors, %d objects", dir, made, failed, found)
		}
		os.RemoveAll(dir)
	}
}

// TestInspect: the objects of a store can be listed while it is in use, and nothing is changed.
func TestInspect(t *testing.T) {
	s := open(t, Options{})
	until := time.Now().Add(time.Hour).Round(0)
	for i, n := range sizes {
		put(t, s, fmt.Sprint(n), body(uint64(i), n), bodies.Meta{ListUntil: until, Copied: i%2 == 0})
	}
	s.Delete("0")
	got := map[string]Held{}
	for h, err := range Inspect(s.opt.Dir) {
		check(t, err)
		got[h.Key] = h
	}
	if len(got) != len(sizes)-1 {
		t.Errorf("%d objects, want %d", len(got), len(sizes)-1)
	}
	for key, h := range got {
		o, ok := s.peek(key)
		if !ok || h.Bytes != o.Size() || !h.ListUntil.Equal(until) || h.Copied != o.Copied() || time.Since(h.Written) > time.Hour {
			t.Errorf("%+v, the store has %v", h, ok)
		}
		if st, err := os.Stat(filepath.Join(s.opt.Dir, h.File)); err != nil || st.IsDir() {
			t.Errorf("%q: %v", h.File, err)
		}
	}
	check(t, os.Truncate(s.segments.path(1, "index"), 200))
	broken := 0
	for _, err := range Inspect(s.opt.Dir) {
		if err != nil {
			broken++
		}
	}
	if broken != 1 {
		t.Errorf("%d errors of one index that is cut off", broken)
	}
}
