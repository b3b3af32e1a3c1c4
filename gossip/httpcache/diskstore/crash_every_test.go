package diskstore_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

var crashes = flag.Int("crashes", 24, "at every so many operations of the disk TestCrashAtEveryWrite stops it")

// A jitter is a disk that yields to other goroutines at random. Without it turnover and
// removals hardly ever fall behind. It never blocks.
type jitter struct {
	diskstore.FS
	mu             sync.Mutex
	rng            *rand.Rand
	marks, therest int // the most yields before a removal or a mark of an entry; before another operation
}

func newJitter(disk diskstore.FS, seed, at uint64) *jitter {
	rng := rand.New(rand.NewPCG(seed, at+99))
	return &jitter{FS: disk, rng: rng, marks: []int{0, 10, 100, 1000}[rng.IntN(4)], therest: []int{0, 3, 30}[rng.IntN(3)]}
}

func (j *jitter) yield(most int) {
	j.mu.Lock()
	n := j.rng.IntN(most + 1)
	j.mu.Unlock()
	for range n {
		runtime.Gosched()
	}
}

func (j *jitter) Remove(name string) error {
	j.yield(j.marks)
	return j.FS.Remove(name)
}

func (j *jitter) Create(name string) (diskstore.File, error) {
	j.yield(j.therest)
	f, err := j.FS.Create(name)
	return jitterFile{f, j}, err
}

type jitterFile struct {
	diskstore.File
	j *jitter
}

func (f jitterFile) WriteAt(p []byte, off int64) (int, error) {
	if len(p) == 1 {
		f.j.yield(f.j.marks)
	} else {
		f.j.yield(f.j.therest)
	}
	return f.File.WriteAt(p, off)
}

func content(n int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d ", n), 20_000)[:(n*7919)%20_000]
}

// TestCrashAtEveryWrite stops the disk in the middle of each operation in turn, and opens the store
// on it twice: acknowledged objects are there, removed ones are not, and no byte is wrong.
func TestCrashAtEveryWrite(t *testing.T) {
	for seed := range uint64(6) {
		at := 1 + int(seed)
		for crashAt(t, seed, at) {
			if t.Failed() {
				t.Fatalf("seed %d, at operation %d", seed, at)
			}
			at += *crashes
		}
		if at < 300 {
			t.Errorf("the disk was used %d times", at)
		}
	}
}

// crashAt stops the disk at the operation with this number, and returns false if there are fewer.
func crashAt(t *testing.T, seed uint64, at int) bool {
	disk := disktest.New()
	var left atomic.Int64
	left.Store(int64(at))
	rng := rand.New(rand.NewPCG(seed, uint64(at)))
	disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
		switch n := left.Add(-1); {
		case n > 0:
			return len(b), nil
		case n == 0 && op == disktest.Write:
			return rng.IntN(len(b) + 1), syscall.EIO
		}
		return 0, syscall.EIO
	})
	o := diskstore.Options{Dir: "/store", MaxBytes: 4 << 20, FS: newJitter(disk, seed, uint64(at))} // more room than anything needs
	s, err := diskstore.Open(o)
	if err != nil {
		return true // before anything was stored
	}
	held := map[string]int{} // the number acknowledged last, by key
	unknown := ""            // the key at which the disk stopped
	r := rand.New(rand.NewPCG(seed, 1))
	for n := 1; n <= 250 && left.Load() > 0; n++ {
		key, what := fmt.Sprint(r.IntN(12)), r.IntN(4)
		switch what {
		case 0:
			s.Delete(key)
			delete(held, key)
		case 1:
			if o, ok := s.Get(key); ok {
				s.Update(o, bodies.Meta{Data: fmt.Append(nil, held[key])})
			}
		default:
			w, err := s.Create(key, -1)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(t.Context(), content(n))
			if _, err = w.Commit(bodies.Meta{Data: fmt.Append(nil, n)}); err == nil {
				held[key] = n
			}
		}
		if evicted := s.Stats().Evictions; evicted > 0 && left.Load() > 0 {
			t.Errorf("%d objects were evicted from a store that has room", evicted)
		}
		if left.Load() <= 0 {
			unknown = key
		}
	}
	stopped := left.Load() <= 0
	after := disk.Killed()
	left.Store(1 << 60)
	s.Close()

	for range 2 { // the second start finds what the first left
		o.FS = after
		s, err := diskstore.Open(o)
		if err != nil {
			t.Errorf("Open: %v", err)
			return stopped
		}
		verify(t, s, held, unknown)
		after = after.Killed()
		s.Close()
	}
	return stopped
}

func verify(t *testing.T, s diskstore.Store, held map[string]int, unknown string) {
	for key, n := range held {
		if _, ok := s.Peek(key); !ok && key != unknown {
			t.Errorf("%q, number %d, was acknowledged and is gone", key, n)
		}
	}
	for key := range s.Keys() {
		obj, _ := s.Peek(key)
		v, err := s.Open(obj, nil)
		if err != nil {
			t.Errorf("%q: %v", key, err)
			continue
		}
		var n int
		fmt.Sscan(string(v.(bodies.Described).Value().([]byte)), &n)
		var b bytes.Buffer
		src, err := v.Source(0, obj.Size())
		if err == nil {
			_, err = io.Copy(&b, src)
		}
		v.Close()
		if err != nil || !bytes.Equal(b.Bytes(), content(n)) {
			t.Errorf("%q, number %d: %d bytes, %v", key, n, b.Len(), err)
		}
		if want, ok := held[key]; key != unknown && (!ok || want != n) {
			t.Errorf("%q is number %d, want %d, %v", key, n, want, ok)
		}
	}
}
