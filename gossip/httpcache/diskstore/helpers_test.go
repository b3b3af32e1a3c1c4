package diskstore

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// mirror counts the calls of hooks, as a digest does.
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

func (m *mirror) hooks() bodies.Hooks {
	return bodies.Hooks{
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

// check compares the mirror with the store. No call may be under way.
func (m *mirror) check(t *testing.T, s *store) {
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

func open(t testing.TB, o Options) *store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	s, err := openStore(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Bounds of package bodies.
const (
	memoryBody = blockSize
	keptBody   = 2 * blockSize
	maxWindow  = 4 * blockSize
	lagTime    = time.Second
)

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

func put(t testing.TB, s *store, key string, b []byte, m bodies.Meta) *object {
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
	return o.(*object)
}

// large returns how many objects have a body that is a file.
func large(s *store) (n int) {
	for o := range s.index.Values() {
		if o.file != nil {
			n++
		}
	}
	return n
}

func read(s *store, key string) (data, b []byte, err error) {
	o, ok := s.Get(key)
	if !ok {
		return nil, nil, bodies.ErrGone
	}
	v, err := s.Open(o, nil)
	if err != nil {
		return nil, nil, err
	}
	defer v.Close()
	var buf bytes.Buffer
	_, err = writeRange(v, &buf, 0, o.Size())
	return v.(*view).Value().([]byte), buf.Bytes(), err
}

// writeRange writes a part of a body, as it comes from Source.
func writeRange(v bodies.View, w io.Writer, off, n int64) (int64, error) {
	src, err := v.Source(off, n)
	if err != nil {
		return 0, err
	}
	return io.Copy(w, src)
}
