//go:build linux

package diskstore

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

var reloadDir = flag.String("reload", "", "the store of BenchmarkReload")

var manyObjects = flag.Int("many", 100_000, "objects of the benchmarks of many small ones; a million is what BenchmarkReload is about")

// manyMeta is of the length of a stored header.
var manyMeta = bodies.Meta{Data: body(1, 300), ListUntil: time.Now().Add(time.Hour), Generated: time.Now()}

func manyKey(i int) string { return fmt.Sprintf("GET http://www.example.com/object/%07d", i) }

// fill puts objects of 1 KiB.
func fill(b *testing.B, s *store, n int) {
	b.Helper()
	one := body(2, 1<<10)
	for i := range n {
		w, err := s.Create(manyKey(i), int64(len(one)))
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Write(b.Context(), one); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Commit(manyMeta); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFill stores objects of 1 KiB with a header of 300 bytes, and reports the heap and the
// disk that each takes beyond its body and header.
func BenchmarkFill(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := open(b, Options{Dir: b.TempDir(), MaxBytes: 4 << 30})
		before := heapBytes()
		b.StartTimer()
		fill(b, s, *manyObjects)
		b.StopTimer()
		s.index.CleanUp()
		b.ReportMetric(float64(heapBytes()-before)/float64(*manyObjects), "heap-B/object")
		b.ReportMetric(float64(onDisk(b, s.opt.Dir))/float64(*manyObjects)/(1024+300), "disk/stored")
		s.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*manyObjects), "ns/object")
}

// BenchmarkSpread reads objects at random in a store that has little memory for hot ones, with a decoded description as
// long as that of a cache. Each of 32 readers waits for its turn, as requests of as many clients do. It reports how
// long the slowest of hundred hits take, and how long with the wait, with the garbage collector and without it.
func BenchmarkSpread(b *testing.B) {
	decode := func(_ string, data []byte) (any, error) {
		h := http.Header{}
		for i := range 8 {
			h[strconv.Itoa(i)] = []string{string(data[i*32 : i*32+32])}
		}
		return h, nil
	}
	s := open(b, Options{Dir: b.TempDir(), MaxBytes: 4 << 30, MemoryBytes: 64 << 20, Hooks: bodies.Hooks{Decode: decode}})
	fill(b, s, *manyObjects)
	for _, percent := range []int{100, -1} {
		b.Run(fmt.Sprintf("gc=%d", percent), func(b *testing.B) {
			runtime.GC()
			defer debug.SetGCPercent(debug.SetGCPercent(percent))
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(8 << 30))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			took, waited, next, cpu := make([]time.Duration, b.N), make([]time.Duration, b.N), atomic.Int64{}, processorTime(b)
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for g := range uint64(32) {
				all.Go(func() {
					r := rand.New(rand.NewPCG(1, g))
					for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
						waits := time.Now()
						runtime.Gosched()
						began := time.Now()
						o, ok := s.Get(manyKey(r.IntN(*manyObjects)))
						if !ok {
							b.Error("gone")
							return
						}
						v, err := s.Open(o, nil)
						if err == nil {
							_, err = writeRange(v, io.Discard, 0, o.Size())
							v.Close()
						}
						if err != nil {
							b.Error(err)
							return
						}
						took[i], waited[i] = time.Since(began), time.Since(waits)
					}
				})
			}
			all.Wait()
			b.StopTimer()
			runtime.ReadMemStats(&after)
			slices.Sort(took)
			slices.Sort(waited)
			b.ReportMetric(float64(processorTime(b)-cpu)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(took[b.N*99/100].Nanoseconds())/1e3, "p99-us")
			b.ReportMetric(float64(waited[b.N*99/100].Nanoseconds())/1e3, "waited-p99-us")
			b.ReportMetric(float64(after.NumGC-before.NumGC), "collections")
		})
	}
}

// BenchmarkReload opens a store, and reports the processor time and the memory of the process after that. With
// -reload DIR it opens the store in DIR, which the first run fills: so the second run shows the
// memory of a process that did nothing else.
func BenchmarkReload(b *testing.B) {
	dir := cmp.Or(*reloadDir, b.TempDir())
	if _, err := os.Stat(filepath.Join(dir, "objects")); err != nil {
		s := open(b, Options{Dir: dir, MaxBytes: 8 << 30})
		fill(b, s, *manyObjects)
		s.Close()
	}
	runtime.GC()
	var cpu int64
	for b.Loop() {
		before := processorTime(b)
		s, err := openStore(Options{Dir: dir, MaxBytes: 8 << 30})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		cpu += processorTime(b) - before
		if n := s.Stats().Objects; n != *manyObjects {
			b.Fatalf("%d objects", n)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys-m.HeapReleased)/(1<<20), "MiB")
		s.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu)/float64(b.N)/1e6, "cpu-ms/op")
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// onDisk returns the bytes that the file system uses for the files below a directory.
func onDisk(t testing.TB, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		n += (info.Size() + unit - 1) / unit * unit
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// BenchmarkTurnover stores objects in a full store, which evicts as many and turns segments over.
func BenchmarkTurnover(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 300_000} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			s := open(b, Options{Dir: b.TempDir(), MaxBytes: 32 << 20})
			one, n := body(2, size), 0
			store := func() {
				w, err := s.Create(manyKey(n), int64(size))
				if err == nil {
					err = w.Write(b.Context(), one)
				}
				if err == nil {
					_, err = w.Commit(manyMeta)
				}
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			for range (64 << 20) / size {
				store()
			}
			for b.Loop() {
				store()
			}
		})
	}
}

// BenchmarkHit opens and reads bodies of several lengths, few of which are in memory, or a slice of each, which begins
// within a block. Longer ones than 64 KiB are files, some of which are open.
func BenchmarkHit(b *testing.B) {
	for _, of := range []struct{ size, from, length int64 }{
		{1 << 10, 0, 1 << 10}, {64 << 10, 0, 64 << 10}, {100_000, 0, 100_000}, {1 << 20, 0, 1 << 20},
		{1 << 20, 300_000, 2 << 10}, {1 << 20, 300_000, 200_000},
	} {
		name := fmt.Sprintf("size=%d", of.size)
		if of.length < of.size {
			name += fmt.Sprintf("/slice=%d", of.length)
		}
		b.Run(name, func(b *testing.B) {
			s := open(b, Options{Dir: b.TempDir(), MaxBytes: 4 << 30, MemoryBytes: 1 << 20})
			const many = 400
			one := body(2, int(of.size))
			for i := range many {
				put(b, s, manyKey(i), one, manyMeta)
			}
			r, hits, before := rand.New(rand.NewPCG(1, 2)), 0, processorTime(b)
			for b.Loop() {
				o, ok := s.Get(manyKey(r.IntN(many)))
				if !ok {
					b.Fatal("gone")
				}
				v, err := s.Open(o, nil)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := writeRange(v, io.Discard, of.from, of.length); n != of.length || err != nil {
					b.Fatal(n, err)
				}
				v.Close()
				hits++
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(hits), "cpu-ns/op")
		})
	}
}
